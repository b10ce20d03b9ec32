#!/usr/bin/env bash
# score.sh EXPERIMENT [--dry-run] [FLAGS OF transformer-plugin score]
# sacreBLEU and chrF of the translations, or F1 of parses.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"
begin "$@"

SUMMARY=1
: "${COMET_PYTHON:=}"  # Python of an environment with unbabel-comet; empty: no COMET
if [[ -n ${TREEBANK:-} ]]; then
    stage score --output "$RUN_DIR/score.json" --input "$RUN_DIR/hypotheses.txt" \
        --input "$DATA_DIR/raw/$EVALUATE.trees" -- transformer-plugin parseval --hypotheses "$RUN_DIR/hypotheses.txt" \
        --gold "$DATA_DIR/raw/$EVALUATE.trees" --set "$EVALUATE" --output "$RUN_DIR/score.json" \
        "${EXTRA[@]}"
    perform
    return 0  # to run.sh
fi

prepared=0 report=$DATA_DIR/clean/report.json
! grep -qs '"lowercase": true' "$report" || prepared=1
[[ ! -e $report || $prepared == "$LOWERCASE" || " ${PLAN[*]-} " == *" prepare "* ]] ||
    die "LOWERCASE is $LOWERCASE, but $DATA_DIR was prepared with LOWERCASE=$prepared: set the same"

held_out=0  # 1: the set is a part of the corpus's train
[[ ! -e $DATA_DIR/clean/$EVALUATE.raw.$TARGET ]] || held_out=1
[[ $EVALUATE != valid || -z ${CORPUS:-} ]] ||
    ! grep -qs '"every"' "$REPO/data-prep/corpora/$CORPUS.json" "$CORPUS" || held_out=1
raw=$DATA_DIR/raw/$EVALUATE
[[ $held_out == 0 || -n ${TRAIN:-} ]] || raw=$DATA_DIR/clean/$EVALUATE.raw
flags=()
[[ -z $COMET_PYTHON || $DRY_RUN == 1 ]] || command -v "$COMET_PYTHON" > /dev/null ||
    die "COMET_PYTHON is '$COMET_PYTHON': there is no such program"
[[ -z $COMET_PYTHON ]] ||
    flags+=(--comet-python "$COMET_PYTHON" --source "$raw.$SOURCE")
[[ $LOWERCASE == 0 ]] || flags+=(--lowercase)
stage score --output "$RUN_DIR/score.json" --input "$RUN_DIR/hypotheses.txt" \
    --input "$raw.$TARGET" -- transformer-plugin score --hypotheses "$RUN_DIR/hypotheses.txt" \
    --reference "$raw.$TARGET" --set "$EVALUATE" \
    --output "$RUN_DIR/score.json" --language "$TARGET" \
    "${flags[@]}" "${EXTRA[@]}"
perform
