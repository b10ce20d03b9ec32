#!/usr/bin/env bash
# Trains an experiment, or goes on where its last checkpoint ended:
#   train.sh EXPERIMENT [--dry-run] [FLAGS OF fairseq-train]
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"

: "${ARCH:?the experiment sets it}" "${MAX_TOKENS:?}" "${MAX_EPOCH:?}"
: "${WARMUP_UPDATES:=4000}"  # section 5.3
: "${LR_FACTOR:=1.0}"        # times the paper's schedule
: "${DROPOUT:=0.1}"          # section 5.4
: "${UPDATE_FREQ:=1}"        # batches an update
: "${AVERAGE:=5}"            # epochs kept for averaging, section 6.1
: "${SEED:=1}"
: "${PRECISION:=fp32}"       # fp32, bf16, or fp16 on a GPU

flags=()
if ! "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    flags+=(--cpu)
fi
case $PRECISION in
    fp32) ;;
    bf16 | fp16) flags+=("--$PRECISION") ;;
    *) die "PRECISION is '$PRECISION': expected fp32, bf16 or fp16" ;;
esac

last="$RUN_DIR/checkpoints/checkpoint_last.pt"
[[ ! -e $last ]] || APPEND=1  # training goes on, and so does its log

stage train "$last" "$RUN_DIR/data-bin" -- \
    logged "$RUN_DIR/train.log" fairseq-train "$RUN_DIR/data-bin" \
    --user-dir "$(transformer-plugin path)" \
    --task vaswani_translation --source-lang "$SOURCE" --target-lang "$TARGET" \
    --arch "$ARCH" --dropout "$DROPOUT" \
    --criterion vaswani_cross_entropy --label-smoothing 0.1 \
    --optimizer vaswani_adam \
    --lr-scheduler noam --warmup-updates "$WARMUP_UPDATES" --lr "$LR_FACTOR" \
    --max-tokens "$MAX_TOKENS" --update-freq "$UPDATE_FREQ" --max-epoch "$MAX_EPOCH" \
    --seed "$SEED" --num-workers 0 --no-progress-bar --log-format simple --log-interval 50 \
    --save-dir "$RUN_DIR/checkpoints" --keep-last-epochs "$AVERAGE" \
    ${flags[@]+"${flags[@]}"} ${EXTRA[@]+"${EXTRA[@]}"}
