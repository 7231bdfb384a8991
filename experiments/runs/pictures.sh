#!/usr/bin/env bash
# One H200, END - now seconds of it: soft targets for static MNIST, the long run towards them, and the rest of the 300
# epochs of SFARM's own network (about 760 s from step 25,000 if it is alone).
#
#   setsid nohup bash experiments/runs/pictures.sh DATA WORK END > driver.out 2>&1 < /dev/null &
#   bash experiments/runs/pack.sh WORK OUT      # at any moment; WORK/done is there when all has ended
#
# None of these is compared by its seconds, so they may share the GPU. Where CUDA's multi-process service (MPS) works
# they do all the time, the long run in what the others leave; where not, they take turns: LONG seconds of the long run,
# then the network. Whatever has the GPU, the long run's scores come last.
#
# DATA has mnist_static_binarized/, END is a time of the day, in seconds since 1970. MORE has further options of the long
# run. TRY=1 runs the same commands tiny on a CPU.
set -u
data=$(realpath "$1"); mkdir -p "$2"; work=$(realpath "$2"); E=$3; S=$(date +%s)
export ANYFILL_DATA=$data PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton
here=$(cd "$(dirname "$0")" && pwd); . "$here/turns.sh"
python=${PYTHON:-python3}; mnist="$python -m experiments.sfarm.static_mnist"
said() { echo "[$(($(date +%s) - S)) s] $*" | tee -a "$work/driver.log"; }

shared=""
if [ -z "${NO_MPS:-}" ] && command -v nvidia-cuda-mps-control > /dev/null; then
  export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps-log
  mkdir -p "$work/mps" "$work/mps-log"; nvidia-cuda-mps-control -d
  timeout 40 $python -c "import torch; x = torch.randn(64, 64, device='cuda'); print(float((x @ x).sum()))" > "$work/mps.out" 2>&1 &&
    timeout 5 bash -c 'echo get_server_list | nvidia-cuda-mps-control' | grep -q '[0-9]' && shared=yes
  if [ -z "$shared" ]; then echo quit | timeout 5 nvidia-cuda-mps-control; unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY; fi
fi
said "MPS: ${shared:-no}"

if [ -z "${TRY:-}" ]; then
  U1=$((S + 85)); if [ -n "$shared" ]; then U2=$((E - 110)); else U2=$((U1 + ${LONG:-430})); fi
  long="--tokens patches --batch 128 --width 512 --depth 8 --dropout 0.15 --joint 0.85 --raster 0.4 --shifts 2 --validate-every 1000 ${MORE:-}"
  restore="--restore-steps 100000 --restore-seconds ${RESTORE:-40}"; rows=""; paper=""
else # seconds each, on a CPU: does it run?
  U1=$((S + 40)); U2=$((U1 + 20))
  long="--tokens patches --batch 4 --width 64 --depth 1 --shifts 2 --validate-every 5 ${MORE:-}"
  restore="--restore-steps 4 --restore-width 8"; rows="--rows 8"
  paper="--rows 12 --steps 40 --side 14 --unet-width 16 --unet-blocks 1 --batch 4"
fi

# What compiles meanwhile and waits for its turn.
CUDA_MPS_CLIENT_PRIORITY=1 $mnist train --out "$work/long" $long --targets "$work/restore/targets.npy" $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
training=$!
own=$work/paper/sfarm-paper; mkdir -p "$own" # goes on where it stopped
[ -n "${TRY:-}" ] || [ -e "$own/config.json" ] || cp results/sfarm/logs/paper/checkpoint/* results/sfarm/logs/paper/*.jsonl "$own/"
ANYFILL_TURN_OF=paper $python -m experiments.sfarm.paper --out "$work/paper" --data "$data" --set static $paper --until $((E - 20)) --scoring 45 > "$work/paper.log" 2>&1 &
network=$!
if [ -z "$shared" ]; then
  touch "$own/train.jsonl"; lines=$(wc -l < "$own/train.jsonl")
  ( while [ "$(wc -l < "$own/train.jsonl")" -le "$lines" ] && [ "$(date +%s)" -lt $((U1 - 3)) ]; do sleep 0.2; done
    rest paper; said "the paper's network: waits after $(wc -l < "$own/train.jsonl") lines" ) &
fi

$mnist targets --out "$work/restore" $restore $rows > "$work/restore.log" 2>&1
if [ -e "$work/restore/targets.npy" ]; then said "soft targets: written"; else # the long run goes on without
  said "NO soft targets"; kill $training; wait $training
  $mnist train --out "$work/long" $long $rows --begin $U1 --until $U2 > "$work/long.log" 2>&1 &
  training=$!
fi
wait $training; said "static MNIST: trained"
wake paper
$mnist score --out "$work/long" $long $rows --question-rows 2000 --until $((E - 25)) > "$work/score.log" 2>&1
said "static MNIST: scored"
wait $network; said "the paper's network: ended"
touch "$work/done"
