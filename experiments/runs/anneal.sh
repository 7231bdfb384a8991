#!/usr/bin/env bash
# One H200, about 380 s: static MNIST once more from the middle of a long run, its rate falling to nothing before pixels are
# learnt by heart. Soft targets are made anew (about 110 s) while it compiles.
#
#   START=folder bash experiments/runs/anneal.sh DATA WORK TRAINED SCORED
#
# START is that run, or what pack.sh brought home of it; training ends TRAINED seconds after the call, and scores that
# have not begun SCORED seconds after it are left out. pack.sh WORK OUT packs. MORE has further options of training; TRY=1 is tiny, on a CPU.
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); S=$(date +%s); trained=$3; scored=$4
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
mnist="${PYTHON:-python3} -m experiments.sfarm.static_mnist"
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }
network="--tokens patches --width 512 --depth 8 --shifts 2"
if [ -z "${TRY:-}" ]; then
  long="$network --batch 128 --dropout 0.2 --rate 0.0018 --joint 0.9 --raster 0.3 --validate-every 500 --save-every 3000"
  restore="--restore-eager --restore-steps 100000 --restore-seconds 55"; rows=""
else
  long="$network --batch 4 --dropout 0.2 --rate 0.0018 --joint 0.9 --raster 0.3 --validate-every 2 --save-every 2"
  restore="--restore-eager --restore-steps 4 --restore-width 8"; rows="--rows 8"
fi
rm -f "$work/restore/targets.npy" # training waits for the new ones
$mnist train --out "$work/long" $long --start "$START" --targets "$work/restore/targets.npy" --target-share 0.5 $rows ${MORE:-} \
  --until $((S + trained)) > "$work/long.log" 2>&1 &
training=$!
$mnist targets --out "$work/restore" $restore $rows > "$work/restore.log" 2>&1; said "soft targets: written"
wait $training; said "static MNIST: trained"
$mnist score --out "$work/long" $long $rows --question-rows 2000 --until $((S + scored)) > "$work/score.log" 2>&1; said "static MNIST: scored"
touch "$work/done"
