#!/usr/bin/env bash
# One H200, about 970 s: the long run of static MNIST once more, with the validation rows that choose nothing. Soft targets
# (about 110 s, while it compiles), the run towards them, LONG seconds, alone, and its scores. With SHIP=250, about 330 s
# more: then the two models that ship are trained anew, side by side, so many seconds, and scored.
#
#   setsid nohup bash experiments/runs/pictures.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# DATA has mnist_static_binarized/, with SHIP mnist/ and fashion_mnist/, too (images, as idx); END is a time of the day, in seconds since 1970, when scores end. MORE has further
# options of the run (--start FOLDER: from the weights of another). The best weights so far are kept every 2,000 steps, and packed in 8 bits: a run
# that is cut off can be scored, or begun with, and started again in the same WORK goes on exactly. TRY=1 runs the same tiny on a CPU.
# With BRANCHES="1 2", seeds, about 370 s more for one and 290 s for each further: the run goes on anew with that seed, BRANCH (250) seconds,
# from the weights that it had after 0.65 of LONG and the rate that it had there; then the mean of all ends is scored, or whichever end is
# better by validation rows (static_mnist mix).
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
mnist="${PYTHON:-python3} -m experiments.sfarm.static_mnist"
shipped="${PYTHON:-python3} -m experiments.sfarm.shipped"
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }
rows="--valid-too"; restore="--restore-eager"
if [ -z "${TRY:-}" ]; then
  seconds=${LONG:-720}
  long="--tokens patches --batch 128 --width 512 --depth 8 --dropout 0.15 --joint 0.9 --raster 0.35 --shifts 2 --neighbours 3"
  long="$long --validate-every 1000 --save-every 2000 ${MORE:-}"
  restore="$restore --restore-steps 100000 --restore-seconds 70"
  sizes="--width 256 --depth 5"; every=1
else # seconds each, on a CPU: does it run?
  seconds=20; rows="$rows --rows 8"
  long="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --neighbours 3 --validate-every 5 --save-every 5 ${MORE:-}"
  restore="$restore --restore-steps 4 --restore-width 8"
  sizes="--width 64 --depth 1"; every=1000; SHIP=${SHIP:+10}
fi
trunk() { # what the long run's last checkpoint held at 0.65 of it
  while [ ! -e "$work/long/arguments.json" ]; do sleep 1; done
  sleep $((seconds * 65 / 100))
  $mnist keep --out "$work/long" >> "$work/branch.log" 2>&1 && mkdir -p "$work/trunk" && cp -r "$work/long/kept/model" "$work/trunk/" && said "trunk: kept"
}
rm -f "$work/restore/targets.npy" # the long run waits for the new ones
soft="--targets $work/restore/targets.npy --target-share 0.5"
$mnist train --out "$work/long" $long $soft $rows --seconds $seconds > "$work/long.log" 2>&1 &
training=$!
branches=""
if [ -n "${BRANCHES:-}" ]; then rm -f "$work/long/arguments.json"; trunk & fi
$mnist targets --out "$work/restore" $restore $rows > "$work/restore.log" 2>&1
if [ -e "$work/restore/targets.npy" ]; then said "soft targets: written"; else # the long run goes on without
  said "NO soft targets"; soft=""; kill $training; wait $training
  $mnist train --out "$work/long" $long $rows --seconds $seconds > "$work/long.log" 2>&1 &
  training=$!
fi
wait $training; said "static MNIST: trained"
score() { # RUN, by its name; in so many seconds, or until the end
  local end=$((E - 30)); [ -n "${2:-}" ] && [ $(($(date +%s) + $2)) -lt $end ] && end=$(($(date +%s) + $2))
  $mnist score --out "$work/$1" $long $rows --question-rows 2000 --until $end >> "$work/score.log" 2>&1; said "static MNIST: $1 scored"
}
if [ -n "${BRANCHES:-}" ]; then score long 60 & else score long; fi # most wanted first, while a branch compiles
for seed in ${BRANCHES:-}; do
  $mnist train --out "$work/branch$seed" $long --start "$work/trunk" --rate 0.0008 --seed $seed $soft $rows \
    --seconds ${BRANCH:-250} >> "$work/branch.log" 2>&1 && branches="$branches $work/branch$seed"
  said "branch $seed: trained"
done
wait
if [ -n "$branches" ]; then $mnist mix --out "$work/mix" $long $rows --of "$work/long" $branches >> "$work/branch.log" 2>&1 && score mix; fi
if [ -n "${SHIP:-}" ]; then
  for m in digits fashion; do $shipped train $m --out "$work/$m" --seconds $SHIP $sizes > "$work/$m.log" 2>&1 & done; wait
  said "models that ship: trained"
  for m in digits fashion; do $shipped score $m --out "$work/$m" --every $every >> "$work/$m.log" 2>&1; done
  for m in digits fashion; do $shipped ship $m --out "$work/$m" --models "$work/ship" >> "$work/$m.log" 2>&1; done # 16 bits
  said "models that ship: scored"
fi
touch "$work/done"
