#!/usr/bin/env bash
# One H200, about 1,640 s: what pictures still lack. Soft targets for static MNIST; the long run towards them, LONG
# seconds, alone; then SFARM's own network goes on to the last of its 300 epochs (about 725 s from epoch 68), while the
# long run is scored; between, one-pass by the dynamic protocol for twelve seconds, alone.
#
#   setsid nohup bash experiments/runs/pictures.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# DATA has mnist/ and mnist_static_binarized/, END is a time of the day, in seconds since 1970. MORE has further options
# of the long run. TRY=1 runs the same commands tiny on a CPU.
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
here=$(cd "$(dirname "$0")" && pwd); . "$here/turns.sh"
python=${PYTHON:-python3}; mnist="$python -m experiments.sfarm.static_mnist"
if [ -z "${TRY:-}" ]; then
  U1=$((S + 110)); U2=$((U1 + ${LONG:-660})); D=$((U2 + 75))
  long="--tokens patches --batch 128 --width 512 --depth 8 --dropout 0.15 --joint 0.85 --raster 0.4 --shifts 2 --validate-every 1000 ${MORE:-}"
  restore="--restore-steps 100000 --restore-seconds 40"; seconds="--dynamic 12"; rows=""; paper=""
else # seconds each, on a CPU: does it run?
  U1=$((S + 40)); U2=$((U1 + 20)); D=$((U2 + 15))
  long="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --validate-every 5 ${MORE:-}"
  tiny="--side 14 --unet-width 16 --unet-blocks 1 --batch 4"
  restore="--restore-steps 4 --restore-width 8"; seconds="--dynamic 2 --tiny"; rows="--rows 8"; paper="--rows 12 --steps 40 $tiny"
fi
soft="--targets $work/restore/targets.npy"
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }

# What compiles meanwhile and waits for its turn.
$mnist train --out "$work/long" $long $soft $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
training=$!
own=$work/paper/sfarm-paper; mkdir -p "$own" # goes on where it stopped
[ -n "${TRY:-}" ] || [ -e "$own/config.json" ] || cp results/sfarm/logs/paper/checkpoint/* results/sfarm/logs/paper/*.jsonl "$own/"
touch "$own/train.jsonl"; lines=$(wc -l < "$own/train.jsonl")
( while [ "$(wc -l < "$own/train.jsonl")" -le "$lines" ] && [ "$(date +%s)" -lt $((U1 - 3)) ]; do sleep 0.2; done
  rest others; said "the paper's network: waits after $(wc -l < "$own/train.jsonl") lines" ) &
ANYFILL_TURN_OF=others-paper nice -n 12 $python -m experiments.sfarm.paper --out "$work/paper" --data "$data" --set static $paper --until $((E - 20)) --scoring 45 > "$work/paper.log" 2>&1 &
network=$!

# 1. Soft targets, and the long run towards them.
$mnist targets --out "$work/restore" $restore $rows > "$work/restore.log" 2>&1
if [ -e "$work/restore/targets.npy" ]; then said "soft targets: written"; else # the long run goes on without
  said "NO soft targets"; kill $training; wait $training
  $mnist train --out "$work/long" $long $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
  training=$!
fi
wait $training; said "static MNIST: trained"
# 2. What counts steps, and what only asks. Meanwhile what compiles for twelve seconds of one-pass by the dynamic
# protocol; for these, all others rest.
wake others
( ANYFILL_TURN_OF=others-score $mnist score --out "$work/long" $long $rows --question-rows 2000 --until $((E - 30)) > "$work/score.log" 2>&1
  said "static MNIST: scored" ) &
scoring=$!
sit="$python -m experiments.sfarm.sitting --data $data --runs $work/pictures/runs $seconds"
$sit --out "$work/pictures" --train-only --start $D --limit 60 --drawing 0 --only dynamic.one-pass > "$work/pictures.log" 2>&1 &
sitting=$!
sleep $((D > $(date +%s) ? D - $(date +%s) : 0)); rest others; said "dynamic: all others wait"
wait $sitting; wake others; said "dynamic: trained"
$sit --out "$work/scores" --score-only --memory 40 --limit 60 --only dynamic.one-pass > "$work/scores.log" 2>&1
said "dynamic: scored"
wait $scoring $network; said "the paper's network: ended"
touch "$work/done"
