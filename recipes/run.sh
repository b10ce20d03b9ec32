#!/usr/bin/env bash
# A whole experiment, from raw text to BLEU: run.sh EXPERIMENT [--from STAGE] [--to STAGE] [--dry-run]
# Stages: prepare train average generate score. SEEDS="1 2 3" makes a run for each. A stage whose inputs and command have not changed is
# skipped.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

STAGES=(prepare train average generate score)
usage="usage: run.sh EXPERIMENT [--from STAGE] [--to STAGE] [--dry-run]; stages: ${STAGES[*]}"

index_of() {  # index_of STAGE
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
first=0 last=$((${#STAGES[@]} - 1))
while (($#)); do
    case $1 in
        --from) first=$(index_of "${2:?$usage}"); shift 2 ;;
        --to) last=$(index_of "${2:?$usage}"); shift 2 ;;
        --dry-run) DRY_RUN=1; shift ;;
        *) die "unknown option '$1'; $usage" ;;
    esac
done
((first <= last)) || die "--from ${STAGES[first]} comes after --to ${STAGES[last]}"
begin "$experiment"
if [[ -n $SEEDS && -z ${SEED:-} ]]; then
    for seed in $SEEDS; do
        whole_numbers seed
        stage "seed$seed" --env "SEED=$seed" -- "$REPO/recipes/run.sh" "$experiment" \
            --from "${STAGES[first]}" --to "${STAGES[last]}"
    done
    if [[ ${STAGES[last]} == score && -z ${TREEBANK:-} ]]; then
        stage compare -- transformer-plugin compare "$RUN_DIR" --output "$RUN_DIR/comparison.json"
    fi
    perform
fi
WHOLE_RUN=1
for ((i = first; i <= last; i++)); do
    # shellcheck source=/dev/null
    . "$REPO/recipes/${STAGES[i]}.sh"
done
WHOLE_RUN=
perform
