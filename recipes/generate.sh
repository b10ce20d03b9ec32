#!/usr/bin/env bash
# generate.sh EXPERIMENT [--dry-run] [FLAGS OF fairseq-generate]
# Translates the test set by beam search.
# CHECKPOINT replaces the averaged checkpoint; A.pt:B.pt is an ensemble.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"
begin "$@"

: "${MAX_LEN_OWN:=}"  # tokens beyond the source's own; empty: 50, section 6.1
: "${ONLY_TREES:=0}"  # 1: for a parser, search only for trees of the sentence
case $SUBWORDS in
    sentencepiece) marks=(--remove-bpe sentencepiece) undo=() ;;
    moses-bpe) marks=(--remove-bpe subword_nmt) undo=(--detokenise "$TARGET") ;;
esac
[[ -z ${TREEBANK:-} ]] || marks=()
trees=()
switches ONLY_TREES
whole_numbers ${MAX_LEN_OWN:+MAX_LEN_OWN}
[[ $ONLY_TREES == 0 ]] || trees=(--only-trees)

find_gpus
precision=() exactness=()
if ((gpus)); then
    : "${PRECISION:=$half}"  # the precision of training too
    case $PRECISION:$SYSTEM in
        fp32:*) exactness=("${TF32[@]}") ;;
        bf16:transformer | fp16:transformer) precision=(--decode-precision "$PRECISION") ;;
    esac
fi

IFS=: read -r -a checkpoints <<< "$CHECKPOINT"
stage generate --output "$RUN_DIR/generate.log" "${checkpoints[@]/#/--input=}" \
    --input "$DATA_DIR/data-bin" --input "$REPO/transformer_plugin/modules" \
    --input "$REPO/transformer_plugin/search" \
    --stdout "$RUN_DIR/generate.log" --about "the $EVALUATE set, beam $BEAM" \
    "${exactness[@]}" -- fairseq-generate "$DATA_DIR/data-bin" \
    --user-dir "$REPO/transformer_plugin" \
    --task vaswani_translation --source-lang "$SOURCE" --target-lang "$TARGET" \
    --path "$CHECKPOINT" --gen-subset "$EVALUATE" --beam "$BEAM" --lenpen "$ALPHA" \
    "${precision[@]}" "${marks[@]}" \
    "${trees[@]}" ${MAX_LEN_OWN:+--max-len-own "$MAX_LEN_OWN"} "${EXTRA[@]}"
stage hypotheses --output "$RUN_DIR/hypotheses.txt" --input "$RUN_DIR/generate.log" -- \
    transformer-plugin hypotheses --log "$RUN_DIR/generate.log" --output "$RUN_DIR/hypotheses.txt" \
    "${undo[@]}"
perform
