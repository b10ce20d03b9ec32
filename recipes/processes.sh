# shellcheck shell=bash disable=SC2034,SC2154
# The processes of training. Sourced by train.sh; sets:
#   devices       how many processes train together, one a GPU (or several on CPUs, by gloo)
#   launch        words before fairseq-train that start them; none for one process
#   launch_env    --env flags of `stage` for these processes
#   device_flags  flags of fairseq-train
#   loaders       processes that load data, for each of them
: "${GPUS:=}"              # processes on each machine; empty: its GPUs, or one on a CPU
: "${NODES:=1}"            # machines; each but the first also sets NODE_RANK, and all MASTER_ADDR
: "${MASTER_ADDR:=127.0.0.1}" "${MASTER_PORT:=29500}"  # the first machine's, for torch.distributed
: "${LAUNCHER:=torchrun}"  # or srun, within a Slurm job

# choose_batch: set MAX_TOKENS, the padded tokens of a batch, from UPDATE_TOKENS and the GPU's memory.
# The start is 4,096, the paper's batch on one of its 8 GPUs. With more memory it is doubled while the
# batch fits and each process still has two of them in an update, for a mix of sentence lengths. If there
# are more processes than batches of 4,096 in an update, it is lowered, to no less than 1,024.
choose_batch() {
    local mebibytes=$((memory * 1024 * 4 / 5)) token=480  # KB of a token of big in half precision
    [[ $PRECISION != fp32* ]] || token=960
    MAX_TOKENS=$((UPDATE_TOKENS / devices))
    ((MAX_TOKENS <= 4096)) || MAX_TOKENS=4096
    ((MAX_TOKENS >= 1024)) || MAX_TOKENS=1024
    while ((4 * MAX_TOKENS * devices <= UPDATE_TOKENS)) &&
        ((5120 + 2 * MAX_TOKENS * token / 1024 <= mebibytes)); do  # 5 GiB: weights, moments, loss
        MAX_TOKENS=$((2 * MAX_TOKENS))
    done
}

launch=() launch_env=() device_flags=()
whole_numbers NODES NODE_RANK ${GPUS:+GPUS}
positive MASTER_PORT
find_gpus
: "${GPUS:=$((gpus ? gpus : 1))}"
((GPUS && NODES)) || die "GPUS is $GPUS and NODES is $NODES: expected at least 1"
((NODE_RANK < NODES)) || die "NODE_RANK is $NODE_RANK and NODES is $NODES: ranks count from 0"
((gpus == 0 || GPUS <= gpus)) || die "GPUS is $GPUS, but this machine has $gpus"
((gpus)) || device_flags+=(--cpu)
devices=$((GPUS * NODES))
((devices > 1 || gpus < 2)) || device_flags+=(--distributed-world-size 1)  # fairseq takes all GPUs
if ((devices > 1)) || [[ $LAUNCHER == srun ]]; then  # Slurm signals only what srun starts
    case $LAUNCHER in
        torchrun) launch=(torchrun --nnodes "$NODES" --node-rank "$NODE_RANK" --nproc-per-node "$GPUS"
            --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" --no-python) ;;
        # --wait: seconds from the end of a task to that of all; a stopped task ends with 85.
        srun) launch=(srun --nodes "$NODES" --ntasks-per-node "$GPUS" --kill-on-bad-exit=0 --wait=60) ;;
        *) die "LAUNCHER is '$LAUNCHER': expected torchrun or srun" ;;
    esac
fi
if ((devices > 1)); then
    launch+=("$REPO/recipes/worker.sh")
    # fairseq's defaults, NCCL and DDP that overlaps with the backward pass, need GPUs.
    ((gpus)) || device_flags+=(--distributed-backend gloo --ddp-backend legacy_ddp)
    # TORCH_ELASTIC_SHUTDOWN_TIMEOUT: seconds that torchrun gives processes to save and end.
    # PET_SIGNALS_TO_HANDLE: torchrun would also take SIGHUP under nohup. Recipes pass on SIGTERM alone,
    # but a SIGUSR1 may go to the whole process group.
    launch_env=(--env "MASTER_ADDR=$MASTER_ADDR" --env "MASTER_PORT=$MASTER_PORT"
        --env "PET_SIGNALS_TO_HANDLE=SIGTERM,SIGUSR1"
        --env "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-45}"
        --env "OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((gpus ? 1 : ($(nproc) + GPUS - 1) / GPUS))}")
fi
# glibc's cache of small blocks would keep the gaps between tensors apart, so that none of the same size fits
# there again. Without it training on a CPU takes up to 9 % less memory (docs/experiments.md).
((gpus)) || launch_env+=(--env "GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.tcache_count=0}")
# None on a CPU, whose cores are busy. On a GPU, loading in the training process would delay its launches.
loaders=$((gpus ? $(env -u OMP_NUM_THREADS nproc) / GPUS : 0))
((loaders < 4)) || loaders=4
