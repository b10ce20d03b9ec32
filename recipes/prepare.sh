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

: "${CORPUS:?the experiment sets it}" "${SOURCE:?}" "${TARGET:?}"
: "${VARIANT:=}"          # of the corpus; empty: its first
: "${VOCAB_SIZE:=37000}"  # joint subwords; section 5.1 of the paper
: "${MAX_LENGTH:=250}"    # words of a training sentence
: "${MAX_RATIO:=1.5}"     # words of the longer side to the shorter
: "${WORKERS:=2}"         # processes of fairseq-preprocess

step() { run "$PYTHON" "$REPO/data-prep/$1.py" "${@:2}" --source "$SOURCE" --target "$TARGET"; }

if [[ -n ${TRAIN:-}${VALID:-}${TEST:-} ]]; then
    from=(--train "${TRAIN:-}" --valid "${VALID:-}" --test "${TEST:-}")
else
    from=("$CORPUS" ${VARIANT:+--variant "$VARIANT"} --downloads "$RUNS/downloads")
fi

step fetch "${from[@]}" --output "$RUN_DIR/raw"
step clean --input "$RUN_DIR/raw" --output "$RUN_DIR/clean" \
    --max-length "$MAX_LENGTH" --max-ratio "$MAX_RATIO" ${EXTRA[@]+"${EXTRA[@]}"}
step subwords --input "$RUN_DIR/clean" --output "$RUN_DIR/subwords" --vocab-size "$VOCAB_SIZE"
step encode --input "$RUN_DIR/clean" --model "$RUN_DIR/subwords/joint.model" \
    --output "$RUN_DIR/encoded"
step binarise --input "$RUN_DIR/encoded" --output "$RUN_DIR/data-bin" --workers "$WORKERS"
