#!/usr/bin/env bash
# One H200, about 1,350 s: what pictures still lack. Soft targets for static MNIST (about 110 s, while the long run
# compiles), the long run towards them, LONG seconds, alone, and its scores; between these one-pass by the dynamic
# protocol for twelve seconds, alone.
#
#   setsid nohup bash experiments/runs/pictures.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# DATA has mnist/ and mnist_static_binarized/, END is a time of the day, in seconds since 1970. MORE has further options
# of the long run. The best weights so far are kept every 2,000 steps, and packed in 8 bits: a run that is cut off can be
# scored, or begun with (--start), and started again in the same WORK goes on exactly. TRY=1 runs the same commands tiny on a CPU.
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
here=$(cd "$(dirname "$0")" && pwd); . "$here/turns.sh"
python=${PYTHON:-python3}; mnist="$python -m experiments.sfarm.static_mnist"
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }
if [ -z "${TRY:-}" ]; then
  seconds=${LONG:-900}; after=75
  long="--tokens patches --batch 128 --width 512 --depth 8 --dropout 0.15 --joint 0.85 --raster 0.4 --shifts 2"
  long="$long --validate-every 1000 --save-every 2000 ${MORE:-}"
  restore="--restore-steps 100000 --restore-seconds 45"; dynamic="--dynamic 12"; rows=""
else # seconds each, on a CPU: does it run?
  seconds=20; after=15
  long="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --validate-every 5 --save-every 5 ${MORE:-}"
  restore="--restore-steps 4 --restore-width 8"; dynamic="--dynamic 2 --tiny"; rows="--rows 8"
fi
rm -f "$work/restore/targets.npy" # the long run waits for the new ones

# 1. Soft targets, and the long run towards them, which compiles meanwhile.
$mnist train --out "$work/long" $long --targets "$work/restore/targets.npy" --target-share 0.5 $rows --seconds $seconds > "$work/long.log" 2>&1 &
training=$!
$mnist targets --out "$work/restore" $restore $rows > "$work/restore.log" 2>&1
if [ -e "$work/restore/targets.npy" ]; then said "soft targets: written"; else # the long run goes on without
  said "NO soft targets"; kill $training; wait $training
  $mnist train --out "$work/long" $long $rows --seconds $seconds > "$work/long.log" 2>&1 &
  training=$!
fi
wait $training; said "static MNIST: trained"
# 2. Its scores. Meanwhile what compiles for one-pass by the dynamic protocol; for its twelve seconds, scores rest.
( ANYFILL_TURN_OF=score $mnist score --out "$work/long" $long $rows --question-rows 2000 --until $((E - 30)) > "$work/score.log" 2>&1
  said "static MNIST: scored" ) &
scoring=$!
D=$(($(date +%s) + after))
sit="$python -m experiments.sfarm.sitting --data $data --runs $work/pictures/runs $dynamic"
$sit --out "$work/pictures" --train-only --start $D --limit 60 --drawing 0 --only dynamic.one-pass > "$work/pictures.log" 2>&1 &
sitting=$!
sleep $((D > $(date +%s) ? D - $(date +%s) : 0)); rest score; said "dynamic: scores wait"
wait $sitting; wake score; said "dynamic: trained"
$sit --out "$work/scores" --score-only --memory 40 --limit 60 --only dynamic.one-pass > "$work/scores.log" 2>&1
said "dynamic: scored"
wait $scoring
touch "$work/done"
