#!/usr/bin/env bash
# Raw parallel text to binarised data: prepare.sh EXPERIMENT [--dry-run] [FLAGS OF clean.py]
# Each step skips itself when its inputs and settings have not changed, and is done again whole when
# it was interrupted. DATA_MIRROR names a folder (or an address) to read the corpus from instead of
# its public one. TRAIN, VALID and TEST name plain parallel files to take instead of the corpus:
# PREFIX stands for PREFIX.$SOURCE and PREFIX.$TARGET, each plain or .gz; several are PREFIX,PREFIX.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"
lock "$DATA_DIR"

needs SOURCE TARGET
: "${VARIANT:=}"                # of the corpus; empty: its first
: "${SUBWORDS:=sentencepiece}"  # or moses-bpe, as in the literature
: "${VOCAB_SIZE:=37000}"        # joint pieces of sentencepiece; section 5.1 of the paper
: "${MERGES:=32000}"            # joint merges of moses-bpe
: "${LOWERCASE:=0}"             # 1: lower case
: "${WORKERS:=}"                # processes; empty: one a core
: "${TRAIN:=}" "${VALID:=}" "${TEST:=}" "${DATA_MIRROR:=}"  # see above
case $SUBWORDS in
    sentencepiece) defaults=(250 1.5) form=() ;;
    moses-bpe) defaults=(80 9) form=(--moses) ;;  # of Moses' clean-corpus-n.perl 1 80
    *) die "SUBWORDS is '$SUBWORDS': expected sentencepiece or moses-bpe" ;;
esac
: "${MAX_LENGTH:=${defaults[0]}}"  # words of a training sentence
: "${MAX_RATIO:=${defaults[1]}}"   # words of the longer side to the shorter
[[ $LOWERCASE == 0 ]] || form+=(--lowercase)

workers=(${WORKERS:+--workers "$WORKERS"})
step() { run python3 "$REPO/data-prep/$1.py" "${@:2}" --source "$SOURCE" --target "$TARGET"; }

if [[ -n $TRAIN$VALID$TEST ]]; then
    from=(--train "$TRAIN" --valid "$VALID" --test "$TEST")
else
    needs CORPUS
    from=("$CORPUS" ${VARIANT:+--variant "$VARIANT"} --downloads "$RUNS/downloads")
fi

steps() {
    step fetch "${from[@]}" --output "$DATA_DIR/raw"
    step clean --input "$DATA_DIR/raw" --output "$DATA_DIR/clean" ${form[@]+"${form[@]}"} \
        --max-length "$MAX_LENGTH" --max-ratio "$MAX_RATIO" ${workers[@]+"${workers[@]}"} \
        ${EXTRA[@]+"${EXTRA[@]}"}
    step subwords --input "$DATA_DIR/clean" --output "$DATA_DIR/subwords" --kind "$SUBWORDS" \
        --vocab-size "$VOCAB_SIZE" --merges "$MERGES" ${workers[@]+"${workers[@]}"}
    step binarise --input "$DATA_DIR/clean" --model "$DATA_DIR/subwords" --output "$DATA_DIR/data-bin" \
        ${workers[@]+"${workers[@]}"}
}
steps
record prepare "$(DRY_RUN=1 && steps)"
