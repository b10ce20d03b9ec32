#!/usr/bin/env bash
# sacreBLEU and chrF of the translations: score.sh EXPERIMENT [--dry-run] [FLAGS OF transformer-plugin score]
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$@"
lock "$RUN_DIR"

flags=()
[[ ${LOWERCASE:-0} == 0 ]] || flags+=(--lowercase)
command=(transformer-plugin score --hypotheses "$RUN_DIR/hypotheses.txt"
    --reference "$DATA_DIR/raw/${EVALUATE:-test}.$TARGET" --output "$RUN_DIR/score.json"
    --language "$TARGET"
    ${flags[@]+"${flags[@]}"} ${EXTRA[@]+"${EXTRA[@]}"})
run "${command[@]}"
record score "$(show "${command[@]}")"
