#!/usr/bin/env bash
# Trains an experiment, or goes on where its last checkpoint ended:
#   train.sh EXPERIMENT [--dry-run] [FLAGS OF fairseq-train]
# On several GPUs or machines: docs/clusters.md. SIGTERM and SIGUSR1 end it with status 85: the update
# is finished and saved, and the same command goes on from there.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"

needs SOURCE TARGET ARCH MAX_TOKENS
: "${MAX_EPOCH:=}" "${MAX_UPDATE:=}"  # when training ends; one of the two at least
: "${WARMUP_UPDATES:=4000}"  # section 5.3
: "${LR_FACTOR:=1.0}"        # times the paper's schedule
: "${DROPOUT:=}" "${LABEL_SMOOTHING:=}"  # empty: those of ARCH
: "${UPDATE_TOKENS:=}"       # slots of an update; empty: one batch on each GPU
: "${SAVE_UPDATES:=}"        # updates between checkpoints; empty: an epoch
: "${AVERAGE:=5}"            # checkpoints kept for averaging, section 6.1
: "${SEED:=1}"
: "${PRECISION:=fp32}"       # fp32, bf16, or fp16 on a GPU
: "${EVAL_BLEU:=0}"          # 1: each validation translates valid by beam search and logs its BLEU

whole_numbers MAX_TOKENS ${UPDATE_TOKENS:+UPDATE_TOKENS}
((MAX_TOKENS)) || die "MAX_TOKENS is 0: expected 1 at least"
# shellcheck source=recipes/processes.sh
. "$REPO/recipes/processes.sh"
lock "$RUN_DIR"
[[ -n $MAX_EPOCH$MAX_UPDATE ]] || die "neither MAX_EPOCH nor MAX_UPDATE is set: when shall it end?"
flags=(${place[@]+"${place[@]}"})
update_freq=1
if [[ -n $UPDATE_TOKENS ]]; then
    batch=$((MAX_TOKENS * devices))
    update_freq=$(((UPDATE_TOKENS + batch - 1) / batch))
    note "$UPDATE_TOKENS slots an update = $MAX_TOKENS a batch x $devices devices x $update_freq" \
        "batches (--update-freq)"
fi
[[ -z $DROPOUT ]] || flags+=(--dropout "$DROPOUT")
[[ -z $LABEL_SMOOTHING ]] || flags+=(--label-smoothing "$LABEL_SMOOTHING")
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
case $EVAL_BLEU:${SUBWORDS:=sentencepiece} in  # as recipes/prepare.sh had it
    0:*) ;;
    1:sentencepiece) flags+=(--eval-bleu --eval-bleu-remove-bpe sentencepiece) ;;
    1:moses-bpe) flags+=(--eval-bleu --eval-bleu-remove-bpe subword_nmt --eval-bleu-detok moses
        --eval-bleu-detok-args "{\"target_lang\": \"$TARGET\"}") ;;
    *) die "EVAL_BLEU is '$EVAL_BLEU' and SUBWORDS '$SUBWORDS': expected 0 or 1, and sentencepiece" \
        "or moses-bpe" ;;
esac

last="$RUN_DIR/checkpoints/checkpoint_last.pt"
[[ ! -e $last ]] || APPEND=1  # training goes on, and so does its log

# ended STATUS: says how training ended.
ended() {
    local status=$1 log="$RUN_DIR/train$node.log" continued=
    [[ ! -e $last ]] || continued="; the same command goes on from its last checkpoint"
    [[ -n $COMMANDS ]] || return 0  # it had not begun
    case $status in
        0) return ;;
        85) note "training was interrupted$continued" ;;
        2) note "training did not begin: see above, or $log" ;;
        *) note "training ended with status $status, see above or $log$continued" ;;
    esac
    record train "$COMMANDS" "$status"
    exit "$status"
}
trap 'ended $?' EXIT

stage "train$node" "$last" "$DATA_DIR/data-bin" -- \
    logged "$RUN_DIR/train$node.log" ${launch[@]+"${launch[@]}"} fairseq-train "$DATA_DIR/data-bin" \
    --user-dir "$REPO/transformer_plugin" \
    --task vaswani_translation --source-lang "$SOURCE" --target-lang "$TARGET" \
    --arch "$ARCH" --criterion vaswani_cross_entropy --optimizer vaswani_adam \
    --lr-scheduler noam --warmup-updates "$WARMUP_UPDATES" --lr "$LR_FACTOR" \
    --max-tokens "$MAX_TOKENS" --update-freq "$update_freq" \
    --seed "$SEED" --num-workers 0 --no-progress-bar --log-format simple --log-interval 50 \
    --save-dir "$RUN_DIR/checkpoints" \
    ${flags[@]+"${flags[@]}"} ${TRAIN_FLAGS[@]+"${TRAIN_FLAGS[@]}"} ${EXTRA[@]+"${EXTRA[@]}"}
