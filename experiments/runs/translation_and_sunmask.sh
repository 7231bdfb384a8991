#!/usr/bin/env bash
# One H200, about 1,400 s: all of GMLM's Table 1, then what SUNMASK still lacks (sunmask.sh). One job at a time: while
# translators that are compared are trained, whatever compiles for later is stopped.
#
#   setsid nohup bash experiments/runs/translation_and_sunmask.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack_sunmask.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# DATA is that of sunmask.sh, with translation/data.tar.xz (of experiments.gmlm.table1_all_data). END is in seconds since
# 1970. TRY=1 runs the same commands tiny on a CPU.
#
#   from s    what                                                                               seconds
#   0         all compile                                                                        60
#   60        en-de: teacher, distilling, nine methods (others rest), one-pass; de-en likewise   2 x 160
#   380       translations of the tests, both directions side by side (others compile)           55
#   435       SUNMASK and SUNDAE on captions                                                     2 x 112
#   665       SMc, SD, SMt, Coconet on chorales                                                  4 x 68
#   950       draws                                                                              to the end
set -u
here=$(cd "$(dirname "$0")" && pwd)
data=$(realpath "$1"); mkdir -p "$2/back"; work=$(realpath "$2"); E=$3; S=$(date +%s)
. "$here/turns.sh"
python=${PYTHON:-python3}
export PYTHONPATH=src:. PYTHONUNBUFFERED=1
if [ -z "${TRY:-}" ]; then
  train=$((S + 430)); ask=65; teacher=28; each=7; trial=""
  export CAPTIONS=${CAPTIONS:-112} CHORALES=${CHORALES:-68} TURN=${TURN:-90} REST=${REST:-20}
else train=$((S + 250)); ask=200; teacher=2; each=2; trial="--trial"; fi
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }

rm -f "$work/begin" "$work/quiet"
BEGIN=$work/begin bash "$here/sunmask.sh" "$data" "$work" "$E" > "$work/sunmask.out" 2>&1 &
later=$!
( state=awake # whoever compiles rests while that file is there
  while [ ! -e "$work/begin" ]; do
    if [ -e "$work/quiet" ] && [ $state = awake ]; then rest captions; rest chorales; state=resting; said "others rest"; fi
    if [ ! -e "$work/quiet" ] && [ $state = resting ]; then wake captions; wake chorales; state=awake; said "others go on"; fi
    sleep 0.2
  done
  wake captions; wake chorales ) &

table="$python -m experiments.gmlm.table1_all"
export TORCHINDUCTOR_CACHE_DIR=$work/inductor_translation TRITON_CACHE_DIR=$work/triton_translation OMP_NUM_THREADS=2
$table ready --data "$data/translation/data.tar.xz" --work "$work/t1" > "$work/ready.log" 2>&1
said "translation: data are there"
pids=""
for some in autoregressive "padir cmlm" "disco sundae" one_pass; do # they compile side by side, and train by turns
  $table train --work "$work/t1" --recipes $some --teacher $teacher --each $each --out "$work/back" --until $train \
    --quiet "$work/quiet" $trial > "$work/train.translation.${some%% *}.log" 2>&1 &
  pids="$pids $!"
done
wait $pids
rm -f "$work/quiet"; said "translation: trained"
until=$(($(date +%s) + ask)); pids=""
for way in en-de de-en; do
  $table ask --work "$work/t1" --ways $way --out "$work/back" --until $until $trial > "$work/ask.$way.log" 2>&1 &
  pids="$pids $!"
done
wait $pids; said "translation: asked"
touch "$work/begin"
wait $later; said "all has ended"
