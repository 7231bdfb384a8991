#!/usr/bin/env bash
# One H200, about 1,390 s: static MNIST in one piece. Soft targets (about 110 s, while it compiles); the long run towards them, LONG seconds,
# alone; two further ends of it, the first with coins tossed anew, the second mostly towards the pixels as they are; the mean of their weights;
# its last layer anew; and scores of all. With SHIP=250, about 330 s more: then the two models that ship are trained anew, side by side, so
# many seconds, and scored.
#
#   setsid nohup bash experiments/runs/pictures.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# DATA has mnist_static_binarized/, with SHIP mnist/ and fashion_mnist/, too (images, as idx); END is a time of the day, in seconds since 1970,
# when scores end. ROWS says which rows are trained on and kept aside, MORE has further options of the long run (--start FOLDER: from the
# weights of another). The best weights so far are kept every 2,000 steps, and packed in 8 bits: a run that is cut off can be scored, or begun
# with, and started again in the same WORK goes on exactly. TRY=1 runs the same tiny on a CPU.
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
mnist="${PYTHON:-python3} -m experiments.sfarm.static_mnist"
shipped="${PYTHON:-python3} -m experiments.sfarm.shipped"
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }
rows="${ROWS:---valid-rows 10000}"; restore="--restore-eager"
if [ -z "${TRY:-}" ]; then
  seconds=${LONG:-600}; first=220; second=150
  sizes="--tokens patches --batch 128 --width 512 --depth 8 --joint 0.9 --raster 0.4 --shifts 2 --neighbours 3"
  long="--dropout 0.15 --validate-every 1000 --save-every 2000 ${MORE:-}"; end="--dropout 0.2 --validate-every 500"
  restore="$restore --restore-steps 100000 --restore-seconds 70"
  small="--width 256 --depth 5"; every=1
else # seconds each, on a CPU: does it run?
  seconds=15; first=6; second=6; rows="$rows --rows 8"
  sizes="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --neighbours 3"
  long="--validate-every 5 --save-every 5 ${MORE:-}"; end="--validate-every 5"
  restore="$restore --restore-steps 4 --restore-width 8"
  small="--width 64 --depth 1"; every=1000; SHIP=${SHIP:+10}
fi
soft="--targets $work/restore/targets.npy"
score() { # RUN, by its name, and further options
  $mnist score --out "$work/$1" $sizes $rows --question-rows 2000 --until $((E - 30)) ${2:-} >> "$work/score.log" 2>&1; said "$1: scored"
}
rm -f "$work/restore/targets.npy" # the long run waits for the new ones
$mnist train --out "$work/long" $sizes $long $soft --target-share 0.5 $rows --seconds $seconds > "$work/long.log" 2>&1 &
training=$!
$mnist targets --out "$work/restore" $restore $rows > "$work/restore.log" 2>&1
if [ ! -e "$work/restore/targets.npy" ]; then said "NO soft targets"; kill $training; exit 1; fi
said "soft targets: written"
wait $training; said "static MNIST: trained"
score long "--scans 1"
$mnist train --out "$work/first" $sizes $end --start "$work/long" --rate 0.0008 --seed 1 $soft --target-share 0.5 --tossed 0.3 $rows \
  --seconds $first > "$work/first.log" 2>&1; said "its first end: trained"
$mnist train --out "$work/second" $sizes $end --start "$work/first" --rate 0.0003 --seed 3 $soft --target-share 0.15 --tossed 0.1 $rows \
  --seconds $second > "$work/second.log" 2>&1; said "its second end: trained"
$mnist mix --out "$work/mix" $sizes $rows --of "$work/first" "$work/second" > "$work/mix.log" 2>&1; said "mixed"
score mix
$mnist head --out "$work/head" $sizes $rows --of "$work/mix" > "$work/head.log" 2>&1
$mnist score --out "$work/head" --tokens patches $rows --scans 1 >> "$work/score.log" 2>&1; said "last layer: scored"
if [ -n "${SHIP:-}" ]; then
  for m in digits fashion; do $shipped train $m --out "$work/$m" --seconds $SHIP $small > "$work/$m.log" 2>&1 & done; wait
  said "models that ship: trained"
  for m in digits fashion; do $shipped score $m --out "$work/$m" --every $every >> "$work/$m.log" 2>&1; done
  for m in digits fashion; do $shipped ship $m --out "$work/$m" --models "$work/ship" >> "$work/$m.log" 2>&1; done # 16 bits
  said "models that ship: scored"
fi
touch "$work/done"
