#!/usr/bin/env bash
# What a run of sunmask.sh or translation_and_sunmask.sh has to bring home so far, in at most eight files below 16 MiB
# each, as often as wished:
#
#   bash experiments/runs/pack_sunmask.sh WORK OUT
set -u
work=$(realpath "$1"); mkdir -p "$2"; out=$(realpath "$2"); cd "$work" || exit 1
rm -rf packed; mkdir packed # then moved: who is stopped on the way leaves what was there
cp chorales.tar.gz packed/ 2> /dev/null || tar czf packed/chorales.tar.gz --exclude='*/*/*' chorales
tar czf packed/logs.tar.gz $(ls ./*.log ./*.out back/results.* 2> /dev/null)
find captions -maxdepth 1 -type f ! -name '.*' | tar czf packed/captions.tar.gz -T -
cp back/*.tar packed/ 2> /dev/null
[ -e weights/whole ] && tar cf - weights | split -d -a 1 -b 15000000 - packed/weights.tar.
mv packed/* "$out/"
ls -la "$out"
