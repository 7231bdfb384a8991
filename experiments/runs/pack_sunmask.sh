#!/usr/bin/env bash
# What a run of sunmask.sh has to bring home so far, in at most eight files below 16 MiB each:
#
#   bash experiments/runs/pack_sunmask.sh WORK OUT
set -u
work=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); cd "$work" || exit 1
cp chorales.tar.gz "$out/" 2> /dev/null || tar czf "$out/chorales.tar.gz" --exclude='*/*/*' chorales
tar czf "$out/logs.tar.gz" ./*.log
find captions -maxdepth 1 -type f ! -name '.*' | tar czf "$out/captions.tar.gz" -T -
[ -e weights/whole ] && tar cf - weights | split -d -a 1 -b 15000000 - "$out/weights.tar."
ls -la "$out"
