#!/usr/bin/env bash
# What a run of pictures.sh has to bring home so far, in a few files below 16 MiB each:
#
#   bash experiments/runs/pack.sh WORK OUT
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); cd "$work" || exit 1
weights=$(ls -d mix/model_8 mix/model_16 long/model_8 long/model_16 2> /dev/null | head -n 1)
if [ -e long/model/config.json ] && [ ! -e long/train.json ]; then # it goes on: the weights of its last checkpoint
  (cd "$here" && PYTHONPATH=src:. ${PYTHON:-python3} -m experiments.sfarm.static_mnist keep --out "$work/long") && weights=long/kept
fi
tar czf "$out/records.tar.gz" $(ls ./*.log {long,first,second,mix,head,restore,digits,fashion}/*.{json,jsonl} 2> /dev/null)
for m in $(ls ship 2> /dev/null); do tar cf "$out/$m.tar" -C ship $m; done
[ -n "$weights" ] && tar cf - "$weights" | split -b 15000000 - "$out/long_weights."
ls -la "$out"
