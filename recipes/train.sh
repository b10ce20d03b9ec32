#!/usr/bin/env bash
# Trains an experiment, or goes on where its last checkpoint ended:
#   train.sh EXPERIMENT [--dry-run] [FLAGS OF fairseq-train]
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"

: "${ARCH:?the experiment sets it}" "${MAX_TOKENS:?}"
: "${MAX_EPOCH:=}" "${MAX_UPDATE:=}"  # when training ends; one of the two at least
: "${WARMUP_UPDATES:=4000}"  # section 5.3
: "${LR_FACTOR:=1.0}"        # times the paper's schedule
: "${DROPOUT:=0.1}" "${LABEL_SMOOTHING:=0.1}"  # section 5.4
: "${UPDATE_TOKENS:=}"       # slots of an update; empty: one batch on each GPU
: "${SAVE_UPDATES:=}"        # updates between checkpoints; empty: an epoch
: "${AVERAGE:=5}"            # checkpoints kept for averaging, section 6.1
: "${SEED:=1}"
: "${PRECISION:=fp32}"       # fp32, bf16, or fp16 on a GPU

[[ -n $MAX_EPOCH$MAX_UPDATE ]] || die "neither MAX_EPOCH nor MAX_UPDATE is set: when shall it end?"
flags=()
gpus=$("$PYTHON" -c 'import torch; print(torch.cuda.device_count())')
((gpus)) || flags+=(--cpu)
devices=$((gpus ? gpus : 1))
update_freq=1
if [[ -n $UPDATE_TOKENS ]]; then
    batch=$((MAX_TOKENS * devices))
    update_freq=$(((UPDATE_TOKENS + batch - 1) / batch))
    note "$UPDATE_TOKENS slots an update = $MAX_TOKENS a batch x $devices devices x $update_freq" \
        "batches (--update-freq)"
fi
[[ -z $MAX_EPOCH ]] || flags+=(--max-epoch "$MAX_EPOCH")
[[ -z $MAX_UPDATE ]] || flags+=(--max-update "$MAX_UPDATE")
if [[ -n $SAVE_UPDATES ]]; then
    flags+=(--save-interval-updates "$SAVE_UPDATES" --keep-interval-updates "$AVERAGE"
        --no-epoch-checkpoints)
else
    flags+=(--keep-last-epochs "$AVERAGE")
fi
case $PRECISION in
    fp32) ;;
    bf16 | fp16) flags+=("--$PRECISION") ;;
    *) die "PRECISION is '$PRECISION': expected fp32, bf16 or fp16" ;;
esac

last="$RUN_DIR/checkpoints/checkpoint_last.pt"
[[ ! -e $last ]] || APPEND=1  # training goes on, and so does its log

stage train "$last" "$DATA_DIR/data-bin" -- \
    logged "$RUN_DIR/train.log" fairseq-train "$DATA_DIR/data-bin" \
    --user-dir "$(transformer-plugin path)" \
    --task vaswani_translation --source-lang "$SOURCE" --target-lang "$TARGET" \
    --arch "$ARCH" --dropout "$DROPOUT" \
    --criterion vaswani_cross_entropy --label-smoothing "$LABEL_SMOOTHING" \
    --optimizer vaswani_adam \
    --lr-scheduler noam --warmup-updates "$WARMUP_UPDATES" --lr "$LR_FACTOR" \
    --max-tokens "$MAX_TOKENS" --update-freq "$update_freq" \
    --seed "$SEED" --num-workers 0 --no-progress-bar --log-format simple --log-interval 50 \
    --save-dir "$RUN_DIR/checkpoints" \
    "${flags[@]}" ${TRAIN_FLAGS[@]+"${TRAIN_FLAGS[@]}"} ${EXTRA[@]+"${EXTRA[@]}"}
