#!/usr/bin/env bash
# A whole experiment, from raw text to BLEU: run.sh EXPERIMENT [--from STAGE] [--to STAGE] [--dry-run]
# Stages: prepare train average generate score. A stage that is done is not done again.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

STAGES=(prepare train average generate score)
usage="usage: run.sh EXPERIMENT [--from STAGE] [--to STAGE] [--dry-run]; stages: ${STAGES[*]}"

place() {  # place STAGE: its number
    local i
    for i in "${!STAGES[@]}"; do
        [[ ${STAGES[i]} != "$1" ]] || { printf '%s' "$i"; return; }
    done
    die "there is no stage '$1'; $usage"
}

experiment=${1:-}
case $experiment in
    -h | --help) printf '%s\n' "$usage"; exit ;;
    '' | -*) die "$usage" ;;
esac
shift
first=0 last=$((${#STAGES[@]} - 1)) dry_run=()
while (($#)); do
    case $1 in
        --from) first=$(place "${2:?$usage}"); shift 2 ;;
        --to) last=$(place "${2:?$usage}"); shift 2 ;;
        --dry-run) dry_run=(--dry-run); shift ;;
        *) die "unknown option '$1'; $usage" ;;
    esac
done
((first <= last)) || die "--from ${STAGES[first]} comes after --to ${STAGES[last]}"
activate
load_experiment "$experiment"
[[ ${#dry_run[@]} != 0 ]] || lock "$RUN_DIR"
for ((i = first; i <= last; i++)); do
    supervise -- "$REPO/recipes/${STAGES[i]}.sh" "$experiment" ${dry_run[@]+"${dry_run[@]}"}
done
