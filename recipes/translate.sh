#!/usr/bin/env bash
# translate.sh EXPERIMENT [FILE] [--dry-run] [FLAGS OF transformer-plugin translate]
# Translates raw text, line by line, from FILE or standard input to standard output.
# For a parsing experiment it prints trees, and the flags are those of transformer-plugin parse.
# CHECKPOINT replaces the averaged checkpoint; A.pt:B.pt is an ensemble.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"
begin "$@"

input=()
if ((${#EXTRA[@]})) && [[ ${EXTRA[0]} != -* ]]; then
    input=(--input "${EXTRA[0]}")
    EXTRA=("${EXTRA[@]:1}")
fi
tool=translate
[[ -z ${TREEBANK:-} ]] || tool=parse
command=(transformer-plugin "$tool" "$DATA_DIR/data-bin" --path "$CHECKPOINT"
    --source-lang "$SOURCE" --target-lang "$TARGET" --beam "$BEAM" --lenpen "$ALPHA"
    "${input[@]}" "${EXTRA[@]}")
[[ $DRY_RUN == 1 ]] || exec "${command[@]}"
printf '%q ' "${command[@]}"
printf '\n'
