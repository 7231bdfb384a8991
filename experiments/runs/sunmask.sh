#!/usr/bin/env bash
# One H200: what SUNMASK still lacks. Captions: SUNMASK and SUNDAE of the released size for equal seconds, draws with
# error bars. Chorales: SMc, SD, SMt and Coconet for equal seconds, the paper's rounds, losses under the same questions,
# figures.
#
#   setsid nohup bash experiments/runs/sunmask.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack_sunmask.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# DATA has coco_captions_textgan/coco60_train.txt.gz and coco60_test.txt.gz, jsb_chorales/jsb16_train_valid.json and,
# for a machine without mido, rich or typer (imported and not used), site/ with the folders mido packaging rich typer
# click pygments markdown_it mdurl shellingham annotated_doc of some site-packages. END is in seconds since 1970: all
# ends by itself before. Jobs on the GPU come one after another:
#
#   everything compiles, on 16 cores; with BEGIN=FILE nothing is trained before that file is there
#   captions: SUNMASK, then SUNDAE, CAPTIONS seconds each (left to right in front of them if CHAIN seconds are given)
#   chorales: SMc, SD, SMt, Coconet, CHORALES seconds each
#   captions are drawn, TURN seconds: curves, typical words, emphasis
#   chorales are drawn: 1,024 and 512 rounds, losses, figures, then what else
#   captions again, in the last REST seconds
#
# If the U-Net is not compiled when captions have trained, captions are drawn first. TRY=1 runs the same commands tiny
# on a CPU; END is 540 s away then.
set -u
data=$(realpath "$1"); mkdir -p "$2/captions" "$2/chorales"; work=$(realpath "$2"); E=$3; S=$(date +%s)
here=$(cd "$(dirname "$0")" && pwd); . "$here/turns.sh"
python=${PYTHON:-python3}
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TORCHINDUCTOR_COMPILE_THREADS=4
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
$python -c "import mido, rich, typer" 2> /dev/null || PYTHONPATH=$PYTHONPATH:$data/site
if [ -z "${TRY:-}" ]; then
  most=${CAPTIONS:-240}; waits=120; first=${CHAIN:-}; each=${CHORALES:-100}; over=50; turn=${TURN:-140}; last=${REST:-60}
  size="--size 25M --depth 16"; batch=256; late=""; tiny=""
else
  most=8; waits=60; first=${CHAIN:-}; each=4; over=100; turn=75; last=75
  size="--size 1M --depth 1"; batch=4
  late='--sentences 40 --rounds 4 --batch 40 --bits 20 --emphasis {"samples":2,"rounds":2}'
  tiny="--shrink --crop 32 --width 4 --transformer-width 32 --samples 6 --least 1 --short 4 --rounds 6 --long 8"
fi
now() { date +%s; }
said() { echo "[$(($(now) - S)) s] $*" | tee -a "$work/driver.log"; }
tell() { echo "$2" > "$1.part"; mv "$1.part" "$1"; } # whole at any moment
least() { echo $(($1 < $2 ? $1 : $2)); }
hold() { # PID TIME COMMAND: until the command is true, the process has ended or the time has come
  local pid=$1 limit=$2; shift 2
  while ! "$@" && kill -0 "$pid" 2> /dev/null && [ "$(now)" -lt "$limit" ]; do sleep 0.3; done
}
learns() { # RECIPE OPTIONS
  local recipe=$1; shift
  ANYFILL_TURN_OF=captions $python -m experiments.sunmask.emnlp train --set captions --recipe "$recipe" --out "$work/captions" $size \
    --batch $batch --written --graphs "$@" > "$work/train.$recipe.log" 2>&1 8>&- 9>&- &
}
draws() { # OPTIONS
  ANYFILL_TURN_OF=captions nice -n 5 $python -m experiments.sunmask.captions_late --models "$work/captions" --out "$work/captions" \
    $size $late "$@" >> "$work/late.log" 2>&1 8>&- 9>&- &
  drawing=$!
}

# What compiles from the beginning, and waits for its turn.
exec 8> "$work/sunmask.lock" 9> "$work/sundae.lock"; flock 8; flock 9
chain=""
[ -z "$first" ] || { learns left_to_right --dropout 0.3 --validate-every 250 --steps 1000 1000000000 --seconds $first; chain=$!; }
learns sunmask --dropout 0.1 --validate-every 500 --after "$work/sunmask.lock"; sunmask=$!
learns sundae --dropout 0.1 --validate-every 500 --after "$work/sundae.lock"; sundae=$!
draws --go "$work/turn.1" "$work/turn.2"
ANYFILL_TURN_OF=chorales nice -n 10 $python -m experiments.sunmask.sitting --plan third --even --aside --seed 1 --seconds $each $tiny \
  --out "$work/chorales" --pack "$work/chorales.tar.gz" --go "$work/go" --later "$work/later" \
  > "$work/sitting.log" 2>&1 8>&- 9>&- &
sitting=$!

# 1. Captions are trained.
if [ -n "${BEGIN:-}" ]; then while [ ! -e "$BEGIN" ]; do sleep 0.3; done; said "begins"; fi
if [ -n "$chain" ]; then
  hold $chain $(($(now) + waits + first)) grep -q "left_to_right: trained" "$work/train.left_to_right.log"
  said "left to right: trained"
fi
limit=$(($(now) + waits))
for recipe in sunmask sundae; do hold "${!recipe}" $limit grep -q "$recipe: ready" "$work/train.$recipe.log"; done
rest chorales # what still compiles for them
for one in sunmask:8 sundae:9; do
  recipe=${one%:*}; said "$recipe: trains for $most s"
  echo "$most" > "$work/$recipe.lock"; flock -u "${one#*:}"
  hold "${!recipe}" $(($(now) + most + 60)) grep -q "$recipe: trained" "$work/train.$recipe.log"
  said "$recipe: trained"
done
wake chorales

# 2. Then by turns.
captions() { # NUMBER UNTIL
  if kill -0 $drawing 2> /dev/null; then tell "$work/turn.$1" "$2"
  else said "captions: begun again"; draws --until "$2"; fi
  hold $drawing $(($2 + 20)) test -e "$work/turn.$1.ended"; said "captions: turn $1 has ended"
}
chorales() {
  local longer=$over; [ -e "$work/chorales/ready" ] || longer=$((over + 90))
  tell "$work/go" "$(least $(($(now) + 4 * each + longer)) $((E - last)))"
  hold $sitting $((E - last)) test -e "$work/chorales/ended"; said "chorales: trained"
}
if [ -e "$work/chorales/ready" ]; then
  said "chorales: compiled"; chorales; captions 1 "$(least $(($(now) + turn)) $((E - last)))"
else
  said "chorales: not compiled yet"; captions 1 "$(least $(($(now) + turn)) $((E - last)))"; chorales
fi
tell "$work/later" $((E - last)); hold $sitting $((E - last + 15)) false; said "chorales: drawn"
( for name in smc smt; do # weights that travel, by the CPU
    nice -n 15 $python -c "
from pathlib import Path
from anyfill.training import load_model, save_model
work = Path('$work')
notes = {'made_by': 'experiments/sunmask'}
save_model(load_model(work / 'chorales/$name'), work / 'weights/$name', notes=notes, eight_bit=True)
"
  done; touch "$work/weights/whole" ) > "$work/weights.log" 2>&1 8>&- 9>&- &
weights=$!
captions 2 $((E - 10))
wait $weights
touch "$work/done"; said "done"
