#!/usr/bin/env bash
# train.sh EXPERIMENT [--dry-run] [FLAGS OF fairseq-train]
# Trains an experiment, or continues from its last checkpoint.
# BASE=CHECKPOINT: starts from the model of another run, on data prepared with the same BASE.
# On several GPUs or machines: docs/clusters.md. On Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP (a closed
# terminal) it finishes the update, saves and ends with status 85; the same command continues from there.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"
begin "$@"

needs SOURCE TARGET ARCH
: "${MAX_EPOCH:=}" "${MAX_UPDATE:=}"  # the end of training; one of the two at least
: "${WARMUP_UPDATES:=4000}"  # section 5.3
: "${LR_FACTOR:=1.0}"        # times the paper's schedule
: "${DROPOUT:=}" "${LABEL_SMOOTHING:=}"  # empty: those of ARCH
: "${UPDATE_TOKENS:=}"       # padded tokens of an update; empty: one batch on each GPU
: "${SEED:=1}"
: "${PRECISION:=}"           # fp32, fp32-exact, bf16, or fp16 on a GPU; empty: as below
: "${EVAL_BLEU:=0}"          # 1: log BLEU and chrF of valid, by beam search, at each validation
: "${PATIENCE:=}"            # validations without a better one after which training stops
: "${PATIENCE_ON:=loss}"     # what is better: a lower loss; with EVAL_BLEU=1 also a higher bleu, chrf

# shellcheck source=recipes/processes.sh
. "$REPO/recipes/processes.sh"
: "${PRECISION:=$half}"  # fp32 on a CPU, bf16 on a GPU, fp16 on one before Ampere
positive ${MAX_TOKENS:+MAX_TOKENS} ${UPDATE_TOKENS:+UPDATE_TOKENS} \
    ${MAX_EPOCH:+MAX_EPOCH} ${MAX_UPDATE:+MAX_UPDATE} ${PATIENCE:+PATIENCE} WARMUP_UPDATES
[[ -n ${MAX_TOKENS:-} || -z $UPDATE_TOKENS ]] || choose_batch
needs MAX_TOKENS
whole_numbers SEED
at_least_zero LR_FACTOR
fractions ${DROPOUT:+DROPOUT} ${LABEL_SMOOTHING:+LABEL_SMOOTHING}
[[ -n $MAX_EPOCH$MAX_UPDATE ]] || die "neither MAX_EPOCH nor MAX_UPDATE is set: set one of them"
flags=("${device_flags[@]}")
learning=()
learning  # a function of recipes/systems/: fills the array of this name
update_freq=1
if [[ -n $UPDATE_TOKENS ]]; then
    batch=$((MAX_TOKENS * devices))
    update_freq=$(((UPDATE_TOKENS + batch - 1) / batch))
    note "$UPDATE_TOKENS padded tokens an update = $MAX_TOKENS a batch x $devices devices x $update_freq" \
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
base=()
if [[ -n $BASE ]]; then
    flags+=(--finetune-from-model "$BASE") base=(--input "$BASE")
fi
case $PATIENCE_ON:$EVAL_BLEU in
    loss:*) ;;
    bleu:1 | chrf:1)
        flags+=(--best-checkpoint-metric "$PATIENCE_ON" --maximize-best-checkpoint-metric) ;;
    *) die "PATIENCE_ON is '$PATIENCE_ON' and EVAL_BLEU '$EVAL_BLEU': expected loss, or bleu or chrf" \
        "with EVAL_BLEU=1" ;;
esac
[[ -z $PATIENCE ]] || flags+=(--patience "$PATIENCE")
exactness=()
case $PRECISION in
    fp32) ((gpus == 0)) || exactness=("${TF32[@]}") ;;
    fp32-exact) ;;
    bf16 | fp16) flags+=("--$PRECISION") ;;
    *) die "PRECISION is '$PRECISION': expected fp32, bf16 or fp16, or fp32-exact, without TF32" ;;
esac
switches EVAL_BLEU
case $EVAL_BLEU:$SUBWORDS in
    0:*) ;;
    1:sentencepiece) flags+=(--eval-bleu --eval-bleu-remove-bpe sentencepiece) ;;
    1:moses-bpe) flags+=(--eval-bleu --eval-bleu-remove-bpe subword_nmt --eval-bleu-detok moses
        --eval-bleu-detok-args "{\"target_lang\": \"$TARGET\"}") ;;
esac

last_checkpoint=$RUN_DIR/checkpoints/checkpoint_last.pt
about=$ARCH
[[ -z $BASE || -e $last_checkpoint ]] || about+=" from ${BASE#"$PWD/"}"
about+=", $PRECISION${MAX_EPOCH:+, $MAX_EPOCH epoch$( ((MAX_EPOCH == 1)) || echo s)}${MAX_UPDATE:+, $MAX_UPDATE updates}"
((devices == 1)) || about+=", $devices processes"
stage train --output "$last_checkpoint" --input "$DATA_DIR/data-bin" \
    --ignore 'test*' --ignore SHA256SUMS \
    --input "$REPO/transformer_plugin/modules" "${base[@]}" \
    --log "$RUN_DIR/train.log" --resumes --about "$about" \
    "${launch_env[@]}" "${exactness[@]}" -- \
    "${launch[@]}" fairseq-train "$DATA_DIR/data-bin" \
    --user-dir "$REPO/transformer_plugin" \
    --task vaswani_translation --source-lang "$SOURCE" --target-lang "$TARGET" \
    --arch "$ARCH" "${learning[@]}" \
    --max-tokens "$MAX_TOKENS" --update-freq "$update_freq" \
    --seed "$SEED" --num-workers "$loaders" --no-progress-bar --log-format simple --log-interval 10 \
    --save-dir "$RUN_DIR/checkpoints" \
    "${flags[@]}" "${TRAIN_FLAGS[@]}" "${EXTRA[@]}"
perform
