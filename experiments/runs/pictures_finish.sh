#!/usr/bin/env bash
# One H200, about 240 s: a long run of static MNIST that was cut off is brought to its end. It begins with the weights that
# came home (pack.sh); the rate falls to nothing, on scans all but alone (questions it learnt before), no coin is tossed
# anew; towards soft targets by a U-Net that was trained elsewhere (static_mnist targets --restore-only). The new weights
# lie in OUT before anything is scored.
#
#   bash experiments/runs/pictures_finish.sh DATA FROM UNET OUT
#
# FROM/model has the weights, UNET/restorer and UNET/restorer.json the U-Net. TRAIN and END: seconds from now when training
# and scoring end; RATE is the rate that falls. TRY=1 with BATCH and SIZES (those of FROM) runs the same tiny on a CPU.
set -u
S=$(date +%s); data=$(realpath "$1"); from=$(realpath "$2"); mkdir -p "$4"; out=$(realpath "$4"); work=$(mktemp -d)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4
mnist="${PYTHON:-python3} -m experiments.sfarm.static_mnist"
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$out/driver.log"; }
rows="--valid-too"; [ -n "${TRY:-}" ] && rows="$rows --rows 8"
sizes="--tokens patches --shifts 2 --neighbours 3 $rows ${SIZES:---width 512 --depth 8}"
cp -r "$3" "$work/restore"
$mnist targets --out "$work/restore" $rows > "$out/restore.log" 2>&1 &
$mnist train --out "$work/long" $sizes --start "$from" --targets "$work/restore/targets.npy" --target-share 0.5 \
  --batch ${BATCH:-128} --dropout 0.1 --joint 0.99999 --raster 0.35 --rate ${RATE:-0.0007} --seed 1 --validate-every 500 \
  --until $((S + ${TRAIN:-165})) > "$out/long.log" 2>&1
said "trained"
cp "$work/long/"*.json* "$work/restore/"*.json "$out/"
tar cf - -C "$work/long" model_8 model_16 2> /dev/null | split -b 15000000 - "$out/long_weights."
$mnist score --out "$work/long" $sizes --question-rows 2000 --until $((S + ${END:-240})) > "$out/score.log" 2>&1
said "scored"
cp "$work/long/score.json" "$out/"
tail -n 4 "$out/long.log"; tail -n 2 "$out/restore.log"; tail -n 2 "$out/score.log"
