#!/usr/bin/env bash
# Translates the test set by beam search: generate.sh EXPERIMENT [--dry-run] [FLAGS OF fairseq-generate]
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"
lock "$RUN_DIR"

: "${BEAM:=4}"         # section 6.1
: "${ALPHA:=0.6}"      # section 6.1
: "${EVALUATE:=test}"  # the set to translate
case ${SUBWORDS:=sentencepiece} in  # as recipes/prepare.sh had it
    sentencepiece) marks=sentencepiece undo=() ;;
    moses-bpe) marks=subword_nmt undo=(--detokenise "$TARGET") ;;
    *) die "SUBWORDS is '$SUBWORDS': expected sentencepiece or moses-bpe" ;;
esac

checkpoint="$RUN_DIR/checkpoints/averaged.pt"
stage generate "$RUN_DIR/generate.log" "$checkpoint" "$DATA_DIR/data-bin" -- \
    capture "$RUN_DIR/generate.log" fairseq-generate "$DATA_DIR/data-bin" \
    --user-dir "$REPO/transformer_plugin" \
    --task vaswani_translation --source-lang "$SOURCE" --target-lang "$TARGET" \
    --path "$checkpoint" --gen-subset "$EVALUATE" --beam "$BEAM" --lenpen "$ALPHA" \
    --remove-bpe "$marks" ${EXTRA[@]+"${EXTRA[@]}"}
stage hypotheses "$RUN_DIR/hypotheses.txt" "$RUN_DIR/generate.log" -- \
    transformer-plugin hypotheses --log "$RUN_DIR/generate.log" --output "$RUN_DIR/hypotheses.txt" \
    ${undo[@]+"${undo[@]}"}
