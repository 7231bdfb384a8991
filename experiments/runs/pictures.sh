#!/usr/bin/env bash
# One H200: the long run on static MNIST, ARDM, SFARM and MAC by the dynamic protocol, and SFARM's own network for as
# many of its 300 epochs as there is time for. What is compared at equal seconds is to be alone on the GPU; what counts
# steps, or only asks, comes at the end.
#
#   bash experiments/runs/pictures.sh DATA WORK END
#
# DATA has mnist/ and mnist_static_binarized/, END is a time of the day, in seconds since 1970. What to bring home: pack.sh.
# The run that is recorded in docs/results/sfarm.md (380 s) trained translators in front of it.
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
python=${PYTHON:-python3}
if [ -z "${TRY:-}" ]; then
  U1=$((S + 60)); U2=$((U1 + ${LONG:-380}))
  long="--tokens patches --batch 128 --width 512 --depth 8 --dropout 0.15 --joint 0.85 --raster 0.4 --shifts 2 --validate-every 500"
  seconds="--dynamic 12"; rows=""; paper=""
else # seconds each, on a CPU: does it run?
  U1=$((S + 30)); U2=$((U1 + 20))
  long="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --validate-every 5"
  tiny="--side 14 --unet-width 16 --unet-blocks 1 --batch 4"
  seconds="--dynamic 2 --tiny"; rows="--rows 8"; paper="--rows 12 --steps 40 $tiny"
fi
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }
at() { while [ "$(date +%s)" -lt "$1" ]; do sleep 0.5; done; }

# What compiles meanwhile and waits for its turn.
nice -n 10 $python -m experiments.sfarm.static_mnist train --out "$work/long" $long $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
mnist=$!
nice -n 12 $python -m experiments.sfarm.paper --out "$work/paper" --data "$data" --set static $paper --until "$E" --scoring 80 > "$work/paper.log" 2>&1 &
own=$!
( while [ ! -s "$work/paper/sfarm-paper/train.jsonl" ] && kill -0 $own 2> /dev/null; do sleep 0.2; done
  kill -STOP $own; said "the paper's network: compiled, waits" ) &

# 1. The long run; what is compared after it compiles beside it.
at $((U1 - 10)) # a long run that could not begin has a plainer one in its place
if ! kill -0 $mnist 2> /dev/null; then
  said "static MNIST: pixels instead"
  long="--tokens pixels --batch 64 --dropout 0.1 --joint 0.85 --shifts 2 --validate-every 1000"
  $python -m experiments.sfarm.static_mnist train --out "$work/long" $long $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
  mnist=$!
fi
models="dynamic.ardm dynamic.sfarm dynamic.mac-inpainting"
sit="$python -m experiments.sfarm.sitting --data $data --runs $work/pictures/runs $seconds"
nice -n 10 $sit --out "$work/pictures" --train-only --ready $((U2 - $(date +%s) - 2)) --start $U2 --limit 200 --drawing 0 --only $models > "$work/pictures.log" 2>&1 &
pictures=$!
wait $mnist; said "static MNIST: trained"
# 2. Equal seconds on dynamic MNIST.
wait $pictures; said "pictures: trained"
# 3. What counts steps, and what only asks.
kill -CONT $own
(
  $python -m experiments.sfarm.static_mnist score --out "$work/long" $long $rows --question-rows 2000 --until $((E - 15)) > "$work/score.log" 2>&1
  said "static MNIST: scored"
  $sit --out "$work/scores" --score-only --memory 40 --limit 120 --only $models > "$work/scores.log" 2>&1
  said "dynamic: scored"
) &
wait $!; said "asked"
wait $own; said "the paper's network: ended"
