#!/usr/bin/env bash
# prepare.sh EXPERIMENT [--dry-run] [FLAGS OF clean.py, or trees.py]
# Raw parallel text to binarised data. A step is skipped when its inputs and settings have not
# changed; an interrupted one is started again.
# DATA_MIRROR is a folder or an address that has the corpus, instead of its public address. TRAIN,
# VALID and TEST are parallel files of your own: PREFIX stands for PREFIX.$SOURCE and PREFIX.$TARGET,
# each plain or .gz; several are PREFIX,PREFIX; with TOKENISED=1 Moses has tokenised them, and they
# become plain text first. BASE is a checkpoint whose subwords and dictionaries are taken, to
# fine-tune its model.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"
begin "$@"

needs SOURCE TARGET
: "${TREEBANK:=}"               # a treebank of data-prep/treebanks/, for parsing
: "${TREES:=}"                  # its folder or archive
: "${SUBSTITUTIONS:=0}"         # variants of each of its sentences, by substituted constituents
: "${VARIANT:=}"                # a variant of the corpus; empty: its first
: "${VOCAB_SIZE:=37000}"        # joint pieces of sentencepiece; section 5.1 of the paper
: "${MERGES:=32000}"            # joint merges of moses-bpe
: "${WORKERS:=}"                # processes; empty: one per core
: "${TRAIN:=}" "${VALID:=}" "${TEST:=}" "${TOKENISED:=0}" "${DATA_MIRROR:=}"  # see above
case $SUBWORDS in
    sentencepiece) defaults=(250 1.5) form=() ;;
    moses-bpe) defaults=(80 9) form=(--moses) ;;  # limits of Moses' clean-corpus-n.perl 1 80
esac
: "${MAX_LENGTH:=${defaults[0]}}"  # words of a training sentence
: "${MAX_RATIO:=${defaults[1]}}"   # words of the longer side to the shorter
positive VOCAB_SIZE MERGES MAX_LENGTH ${WORKERS:+WORKERS}
whole_numbers SUBSTITUTIONS
decimals MAX_RATIO
switches TOKENISED
[[ $LOWERCASE == 0 ]] || form+=(--lowercase)

workers=(${WORKERS:+--workers "$WORKERS"})
step() {
    stage prepare --about "${TRAIN:-${CORPUS:-$SOURCE-$TARGET}}, $SOURCE to $TARGET" \
        --prepares -- \
        python3 "$REPO/data-prep/$1.py" "${@:2}" --source "$SOURCE" --target "$TARGET"
}

step_of_model() { step "$@" --run "$RUNS/$EXPERIMENT"; }  # which stops where trained models need its output
if [[ -n $TREEBANK ]]; then
    [[ -z $BASE ]] || die "BASE is set: parsers are not fine-tuned by recipes/prepare.sh"
    [[ -n $TREES ]] || die "TREES is not set: name the folder or the archive of the treebank"
    raw=$DATA_DIR/raw
    step trees "$TREEBANK" --input "$TREES" --output "$raw" --substitutions "$SUBSTITUTIONS" \
        "${EXTRA[@]}"
    step_of_model subwords --input "$raw" --output "$DATA_DIR/subwords" --side source \
        --vocab-size "$VOCAB_SIZE" "${workers[@]}"
    step_of_model subwords --input "$raw" --output "$DATA_DIR/subwords-target" --side target --kind words \
        "${workers[@]}"
    step_of_model binarise --input "$raw" --model "$DATA_DIR/subwords" \
        --target-model "$DATA_DIR/subwords-target" --output "$DATA_DIR/data-bin" \
        "${workers[@]}"
    perform
    return 0  # to run.sh
fi

if [[ -n $TRAIN$VALID$TEST ]]; then
    from=(--train "$TRAIN" --valid "$VALID" --test "$TEST")
    [[ $TOKENISED == 0 ]] || from+=(--tokenised)
else
    needs CORPUS
    [[ $TOKENISED == 0 ]] || die "TOKENISED is for files of your own: set TRAIN, VALID and TEST"
    from=("$CORPUS" ${VARIANT:+--variant "$VARIANT"} --downloads "$RUNS/downloads")
fi

step fetch "${from[@]}" --output "$DATA_DIR/raw"
step clean --input "$DATA_DIR/raw" --output "$DATA_DIR/clean" "${form[@]}" \
    --max-length "$MAX_LENGTH" --max-ratio "$MAX_RATIO" "${workers[@]}" \
    "${EXTRA[@]}"
copied=(${BASE:+--copy "$BASE_DATA/subwords"}) known=(${BASE:+--dictionaries "$BASE_DATA/data-bin"})
step_of_model subwords --input "$DATA_DIR/clean" --output "$DATA_DIR/subwords" --kind "$SUBWORDS" \
    --vocab-size "$VOCAB_SIZE" --merges "$MERGES" "${workers[@]}" \
    "${copied[@]}"
step_of_model binarise --input "$DATA_DIR/clean" --model "$DATA_DIR/subwords" --output "$DATA_DIR/data-bin" \
    "${workers[@]}" "${known[@]}"
perform
