#!/usr/bin/env bash
# One H200, about 1,125 s: all of GMLM's Table 1, the long run on static MNIST, ARDM, SFARM and MAC by the dynamic protocol, and
# SFARM's own network for as many of its 300 epochs as there is time for. What is compared at equal seconds is to be
# alone on the GPU; what compiles does so beside what is not compared; what counts steps, or only asks, comes at the end.
# In the run that is recorded the U-Nets of pictures compiled 60 s after translation had begun, and their trial steps
# fell into PaDIR's first turn, which made a quarter fewer updates; now they wait until translation has trained.
#
#   bash experiments/runs/pictures_and_translation.sh DATA WORK END
#
# DATA has mnist/, mnist_static_binarized/ and translation/data.tar.xz (of experiments.gmlm.table1_all_data). END is a time
# of the day, in seconds since 1970. WORK/back is what to bring home, with pack.sh.
set -u
data=$(realpath "$1"); mkdir -p "$2/back"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
python=${PYTHON:-python3}
if [ -z "${TRY:-}" ]; then
  T1=$((S + 40)); U1=$((T1 + 270)); U2=$((U1 + 380))
  long="--tokens patches --batch 128 --width 512 --depth 8 --dropout 0.15 --joint 0.85 --raster 0.4 --shifts 2 --validate-every 500"
  seconds="--dynamic 12"; rows=""; trial=""; paper=""
else # seconds each, on a CPU: does it run?
  T1=$((S + 20)); U1=$((T1 + 150)); U2=$((U1 + 20))
  long="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --validate-every 5"
  tiny="--side 14 --unet-width 16 --unet-blocks 1 --batch 4"
  seconds="--dynamic 2 --tiny"; rows="--rows 8"; trial="--trial"; paper="--rows 12 --steps 40 $tiny"
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

# 1. Table 1, both directions in step.
pids=""
for way in en-de de-en; do
  $python -m experiments.gmlm.table1_all ready --data "$data/translation/data.tar.xz" --work "$work/t1/$way" --way $way > "$work/ready.$way.log" 2>&1 &
  pids="$pids $!"
done
wait $pids; said "translation: data are there"; pids=""
for way in en-de de-en; do
  $python -m experiments.gmlm.table1_all train --work "$work/t1/$way" --way $way --begin $T1 --until $U1 --out "$work/back" $trial > "$work/train.$way.log" 2>&1 &
  pids="$pids $!"
done
at $((U1 - 90)) # a long run that could not begin has a plainer one in its place
if ! kill -0 $mnist 2> /dev/null; then
  said "static MNIST: pixels instead"
  long="--tokens pixels --batch 64 --dropout 0.1 --joint 0.85 --shifts 2 --validate-every 1000"
  $python -m experiments.sfarm.static_mnist train --out "$work/long" $long $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
  mnist=$!
fi
wait $pids; said "translation: trained"
# 2. The long run; what is compared after it compiles beside it.
models="dynamic.ardm dynamic.sfarm dynamic.mac-inpainting"
sit="$python -m experiments.sfarm.sitting --data $data --runs $work/pictures/runs $seconds"
nice -n 10 $sit --out "$work/pictures" --train-only --ready $((U2 - $(date +%s) - 2)) --start $U2 --limit 200 --drawing 0 --only $models > "$work/pictures.log" 2>&1 &
pictures=$!
wait $mnist; said "static MNIST: trained"
# 3. Equal seconds on dynamic MNIST.
wait $pictures; said "pictures: trained"
# 4. What counts steps, and what only asks.
kill -CONT $own; pids=""
for way in en-de de-en; do
  $python -m experiments.gmlm.table1_all ask --work "$work/t1/$way" --way $way --until $((E - 10)) --out "$work/back" $trial > "$work/ask.$way.log" 2>&1 &
  pids="$pids $!"
done
(
  $python -m experiments.sfarm.static_mnist score --out "$work/long" $long $rows --question-rows 2000 --until $((E - 15)) > "$work/score.log" 2>&1
  said "static MNIST: scored"
  $sit --out "$work/scores" --score-only --memory 40 --limit 120 --only $models > "$work/scores.log" 2>&1
  said "dynamic: scored"
) &
pids="$pids $!"
wait $pids; said "asked"
wait $own; said "the paper's network: ended"
