#!/usr/bin/env bash
# run.sh EXPERIMENT [--from STAGE] [--to STAGE] [--dry-run]
# A whole experiment, from raw text to BLEU. Stages: prepare train average generate score. A stage
# whose inputs and command have not changed is skipped. SEEDS="1 2 3" makes a run for each.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"

STAGES=(prepare train average generate score)

index_of() {  # index_of STAGE
    local i
    for i in "${!STAGES[@]}"; do
        [[ ${STAGES[i]} != "$1" ]] || { printf '%s' "$i"; return; }
    done
    die "there is no stage '$1'; $(usage | head -n 1); stages: ${STAGES[*]}"
}

list_experiments() {  # the comment on the second line of each says what it is
    local file
    usage
    printf '\nexperiments:\n'
    for file in "$REPO"/recipes/experiments/*.sh; do
        printf '  %-17s %s\n' "$(basename "$file" .sh)" "$(sed -n '2s/^# //p' "$file")"
    done
}

unknown_option() {  # unknown_option --NAME [VALUE]
    local knob=${1%%=*} value=${2:-VALUE}
    [[ $1 != *=* ]] || value=${1#*=}
    [[ $value != -* ]] || value=1
    knob=${knob#--} knob=${knob//-/_} knob=${knob^^}
    ! grep -qsF "\"\${$knob:=" "$REPO"/recipes/{,experiments/,systems/}*.sh ||
        die "there is no option ${1%%=*}: set a variable, $knob=$value recipes/run.sh $experiment"
    die "there is no option '$1', only --from, --to and --dry-run. Options of a tool go to the script" \
        "of its stage, as in recipes/train.sh $experiment --clip-norm 1.0"
}

experiment=${1:-}
case $experiment in
    '' | -h | --help) list_experiments; exit ;;
    -*) usage >&2; exit 2 ;;
esac
shift
first=0 last=$((${#STAGES[@]} - 1))
while (($#)); do
    case $1 in
        --from) first=$(index_of "${2-}"); shift 2 ;;
        --to) last=$(index_of "${2-}"); shift 2 ;;
        --dry-run) DRY_RUN=1; shift ;;
        -h | --help) list_experiments; exit ;;
        *) unknown_option "$@" ;;
    esac
done
((first <= last)) || die "--from ${STAGES[first]} comes after --to ${STAGES[last]}"
begin "$experiment"
if [[ -n $SEEDS && -z ${SEED:-} ]]; then
    # shellcheck disable=SC2206
    seeds=($SEEDS)  # words, also on several lines
    ((${#seeds[@]})) || die "SEEDS is '$SEEDS': expected whole numbers, as in SEEDS='1 2 3'"
    twice=$(printf '%s\n' "${seeds[@]}" | sort | uniq -d | head -n 1)
    [[ -z $twice ]] || die "SEEDS is '${seeds[*]}': seed $twice appears twice"
    for seed in "${seeds[@]}"; do
        whole_numbers seed
        stage "seed$seed" --env "SEED=$seed" -- "$REPO/recipes/run.sh" "$experiment" \
            --from "${STAGES[first]}" --to "${STAGES[last]}"
    done
    if [[ ${STAGES[last]} == score && -z ${TREEBANK:-} ]]; then
        stage compare -- transformer-plugin compare "$RUN_DIR" --seeds "${seeds[@]}" \
            --output "$RUN_DIR/comparison.json"
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
