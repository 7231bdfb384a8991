#!/usr/bin/env bash
# One H200, about 1,600 s: what pictures still lack. The long run on static MNIST, LONG seconds, alone; one-pass by the
# dynamic protocol; then SFARM's own network goes on to the last of its 300 epochs (about 725 s from epoch 68), while
# the long run is scored.
#
#   setsid nohup bash experiments/runs/pictures.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# DATA has mnist/ and mnist_static_binarized/, END is a time of the day, in seconds since 1970. MORE has further options
# of the long run (--shears 1, --valid-too). The run that is recorded in docs/results/sfarm.md (380 s) was of an earlier
# version. TRY=1 runs the same commands tiny on a CPU.
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
here=$(cd "$(dirname "$0")" && pwd); . "$here/turns.sh"
python=${PYTHON:-python3}
if [ -z "${TRY:-}" ]; then
  U1=$((S + 70)); U2=$((U1 + ${LONG:-700}))
  long="--tokens patches --batch 128 --width 512 --depth 8 --dropout 0.15 --joint 0.85 --raster 0.4 --shifts 2 --validate-every 1000 ${MORE:-}"
  seconds="--dynamic 12"; rows=""; paper=""
else # seconds each, on a CPU: does it run?
  U1=$((S + 40)); U2=$((U1 + 20))
  long="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --validate-every 5 ${MORE:-}"
  tiny="--side 14 --unet-width 16 --unet-blocks 1 --batch 4"
  seconds="--dynamic 2 --tiny"; rows="--rows 8"; paper="--rows 12 --steps 40 $tiny"
fi
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }

# What compiles meanwhile and waits for its turn.
ANYFILL_TURN_OF=mnist $python -m experiments.sfarm.static_mnist train --out "$work/long" $long $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
mnist=$!
own=$work/paper/sfarm-paper; mkdir -p "$own" # goes on where it stopped
[ -n "${TRY:-}" ] || [ -e "$own/config.json" ] || cp results/sfarm/logs/paper/checkpoint/* results/sfarm/logs/paper/*.jsonl "$own/"
touch "$own/train.jsonl"; lines=$(wc -l < "$own/train.jsonl")
ANYFILL_TURN_OF=paper nice -n 12 $python -m experiments.sfarm.paper --out "$work/paper" --data "$data" --set static $paper --until $((E - 20)) --scoring 60 > "$work/paper.log" 2>&1 &
network=$!
while [ "$(wc -l < "$own/train.jsonl")" -le "$lines" ] && kill -0 $network 2> /dev/null && [ "$(date +%s)" -lt $((U1 - 3)) ]; do sleep 0.2; done
rest paper; said "the paper's network: waits after $(wc -l < "$own/train.jsonl") lines"

# 1. The long run.
wait $mnist; said "static MNIST: trained"
# 2. Twelve seconds of one-pass by the dynamic protocol.
sit="$python -m experiments.sfarm.sitting --data $data --runs $work/pictures/runs $seconds"
$sit --out "$work/pictures" --train-only --limit 150 --drawing 0 --only dynamic.one-pass > "$work/pictures.log" 2>&1
said "dynamic: trained"
# 3. What counts steps, and what only asks.
wake paper
( $python -m experiments.sfarm.static_mnist score --out "$work/long" $long $rows --question-rows 2000 --until $((E - 30)) > "$work/score.log" 2>&1
  said "static MNIST: scored"
  $sit --out "$work/scores" --score-only --memory 40 --limit 120 --only dynamic.one-pass > "$work/scores.log" 2>&1
  said "dynamic: scored" ) &
wait $!
wait $network; said "the paper's network: ended"
touch "$work/done"
