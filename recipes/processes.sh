# shellcheck shell=bash disable=SC2034
# Where training runs. Sourced by train.sh; sets:
#   devices  how many processes train together, one a GPU (or several on CPUs, by gloo)
#   launch   the words before fairseq-train that start them; none for one process
#   place    flags of fairseq-train
#   node     what names the files of a machine beyond the first, "" on that
: "${GPUS:=}"              # processes on each machine; empty: its GPUs, or one on a CPU
: "${NODES:=1}"            # machines; each but the first also sets NODE_RANK, and all MASTER_ADDR
: "${NODE_RANK:=0}"        # number of this machine
: "${MASTER_ADDR:=127.0.0.1}" "${MASTER_PORT:=29500}"  # where the processes find each other
: "${LAUNCHER:=torchrun}"  # what starts them; or srun, within a Slurm job

launch=() place=() node=
whole_numbers NODES NODE_RANK ${GPUS:+GPUS}
gpus=$(python3 -c 'import torch; print(torch.cuda.device_count())')
whole_numbers gpus
: "${GPUS:=$((gpus ? gpus : 1))}"
((GPUS && NODES)) || die "GPUS is $GPUS and NODES is $NODES: expected 1 at least"
((gpus == 0 || GPUS <= gpus)) || die "GPUS is $GPUS, but this machine has $gpus"
((gpus)) || place+=(--cpu)
((NODE_RANK == 0)) || node=".node$NODE_RANK"
devices=$((GPUS * NODES))
if ((devices > 1)); then
    # NCCL and overlapping DDP are fairseq's defaults; its wrapper of the latter is for GPUs alone.
    ((gpus)) || place+=(--distributed-backend gloo --ddp-backend legacy_ddp)
    case $LAUNCHER in
        torchrun) launch=(torchrun --nnodes "$NODES" --node-rank "$NODE_RANK" --nproc-per-node "$GPUS"
            --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" --no-python) ;;
        srun) launch=(srun --nodes "$NODES" --ntasks-per-node "$GPUS" --kill-on-bad-exit=1) ;;
        *) die "LAUNCHER is '$LAUNCHER': expected torchrun or srun" ;;
    esac
    launch+=("$REPO/recipes/worker.sh")
    export MASTER_ADDR MASTER_PORT
    # Seconds that torchrun waits for processes that it has told to end, so that they can save.
    export TORCH_ELASTIC_SHUTDOWN_TIMEOUT="${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-45}"
    export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((gpus ? 1 : ($(nproc) + GPUS - 1) / GPUS))}"
fi
