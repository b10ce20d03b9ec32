#!/usr/bin/env bash
# One process of a distributed training, started by torchrun or srun: worker.sh fairseq-train ...
# It gives fairseq the rank and the world size. fairseq's own way divides by the number of GPUs, which
# is 0 on a CPU, and under Slurm calls scontrol.
set -euo pipefail
# Slurm passes on the environment of sbatch, which may have a RANK of its own.
[[ ${LAUNCHER:-} != srun ]] || unset RANK LOCAL_RANK WORLD_SIZE
: "${RANK:=${SLURM_PROCID:?worker.sh is started by torchrun or srun, see recipes/train.sh}}"
: "${LOCAL_RANK:=${SLURM_LOCALID:-0}}" "${WORLD_SIZE:=${SLURM_NTASKS:-1}}"
export RANK LOCAL_RANK WORLD_SIZE
launcher=()  # under torchrun: stops this process when torchrun dies, which nothing else would do
[[ -z ${TORCHELASTIC_RUN_ID:-} ]] || launcher=(transformer-plugin recipe worker "$PPID")
exec "${launcher[@]}" "$@" --distributed-no-spawn --distributed-init-method env:// \
    --distributed-world-size "$WORLD_SIZE" --distributed-rank "$RANK" --device-id "$LOCAL_RANK"
