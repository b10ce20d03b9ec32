# shellcheck shell=bash
# What every verb of recipes/ shares. Source it, then call `begin "$@"`:
#
#   set -euo pipefail
#   . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#   begin "$@"                  # EXPERIMENT [--dry-run] [flags that go to the tool, in EXTRA]
#   lock "$RUN_DIR"             # unless it only reads
#   stage train "$RUN_DIR/checkpoints/checkpoint_last.pt" "$RUN_DIR/data-bin" -- \
#       logged "$RUN_DIR/train.log" fairseq-train "$RUN_DIR/data-bin" "${EXTRA[@]}"
#
# Sets REPO, and after `begin` or `load_experiment`: EXPERIMENT, RUN_DIR, DATA_DIR, DRY_RUN, EXTRA,
# and whatever recipes/experiments/EXPERIMENT.sh sets (CORPUS, SOURCE, TARGET, VOCAB_SIZE, ...).

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
: "${RUNS:=$REPO/runs}"  # the folder that holds one folder per experiment
: "${DRY_RUN:=0}"        # 1: print the commands, run nothing
EXTRA=() COMMANDS='' node=''

# die MSG: say what is wrong on stderr and stop with status 2.
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 2
}

# note MSG: a line of progress on stderr.
note() { printf '[%s] %s\n' "${EXPERIMENT:-recipes}" "$*" >&2; }

# show CMD...: print a command as it could be pasted into a shell.
show() {
    printf '%q' "$1"
    shift
    if (($#)); then printf ' %q' "$@"; fi
    printf '\n'
}

# run CMD...: run a command; with DRY_RUN=1 print it instead.
run() {
    if [[ $DRY_RUN == 1 ]]; then show "$@"; else supervise -- "$@"; fi
}

# logged LOG CMD...: run CMD with stdout and stderr on the screen and in LOG (replaced when CMD
# starts, or with APPEND=1 added to).
logged() {
    if [[ $DRY_RUN == 1 ]]; then
        printf '%s 2>&1 | tee %q\n' "$(show "${@:2}")" "$1"
    else
        supervise --log "$1" ${APPEND:+--append} -- "${@:2}"
    fi
}

# capture FILE CMD...: run CMD and put its stdout into FILE, which appears only when CMD succeeds;
# its stderr goes on the screen and into FILE.stderr.
capture() {
    if [[ $DRY_RUN == 1 ]]; then
        printf '%s > %q\n' "$(show "${@:2}")" "$1"
    else
        supervise --output "$1" -- "${@:2}"
    fi
}

# supervise [OPTIONS OF command.py] -- CMD...: run CMD, which ends when this shell does, and fail
# when it fails. Status 85: it was told to stop by SIGTERM, SIGINT or SIGUSR1, which go on to it.
supervise() {
    local parent=$BASHPID child status signalled
    python3 "$REPO/recipes/command.py" "$parent" "$@" &
    child=$!
    trap 'signalled=1; kill -TERM "$child" 2> /dev/null || true' TERM INT USR1
    while signalled='' status=0; wait "$child" || status=$?; [[ -n $signalled ]]; do :; done
    trap - TERM INT USR1
    return "$status"
}

# lock FOLDER: keep other recipes out of it until this one and all that it has started have ended.
# A recipe within run.sh shares its lock; machines beyond the first leave it to the first.
lock() {
    local file="$1/.lock" descriptor
    [[ $DRY_RUN != 1 && ${NODE_RANK:-0} == 0 ]] || return 0
    [[ -z ${LOCK_DESCRIPTOR:-} || ! $file -ef /dev/fd/$LOCK_DESCRIPTOR ]] || return 0
    mkdir -p "$1"
    [[ -w $1 && (! -e $file || -w $file) ]] || return 0  # nothing can be written there anyway
    exec {descriptor}>> "$file"
    python3 "$REPO/recipes/run_lock.py" "$descriptor" "$file" "${0##*/}" $$ || exit 2
    export LOCK_DESCRIPTOR=$descriptor
}

# record STAGE COMMANDS [STATUS]: note in RUN_DIR/manifest.json what was run and what came of it.
record() {
    [[ $DRY_RUN == 1 || -n $node ]] || python3 "$REPO/recipes/manifest.py" \
        "$RUN_DIR" --data "${DATA_DIR:-$RUN_DIR}" --stage "$1" --commands "$2" --status "${3:-0}"
}

# stage NAME OUTPUT INPUT... -- CMD...: run CMD unless RUN_DIR/.done/NAME says that this very
# command has made OUTPUT from these very inputs. CMD may be a function of the caller whose every
# command goes through run, logged or capture: what it prints in a dry run is "this very command",
# and COMMANDS holds it while it runs.
stage() {
    local name=$1 output=$2 inputs=() done_file="$RUN_DIR/.done/$1" contents commands now
    shift 2
    while (($#)) && [[ $1 != -- ]]; do inputs+=("$1"); shift; done
    (($# > 1)) || die "stage $name: no command after --"
    shift
    if [[ $DRY_RUN == 1 ]]; then
        if declare -F "$1" > /dev/null; then "$@"; else run "$@"; fi
        return
    fi
    contents="$(python3 "$REPO/recipes/fingerprint.py" ${inputs[@]+"${inputs[@]}"})" || exit 2
    if declare -F "$1" > /dev/null; then
        commands="$(DRY_RUN=1 && "$@")" || exit 2
    else
        commands="$(show "$@")"
    fi
    now="$contents $(sha256sum <<< "$commands" | cut -d ' ' -f 1)"
    if [[ -e $output && -f $done_file && "$(< "$done_file")" == "$now" ]]; then
        note "$name: already done"
        return
    fi
    note "$name: starts"
    # shellcheck disable=SC2034  # train.sh reads it
    COMMANDS=$commands
    rm -f "$done_file"
    if declare -F "$1" > /dev/null; then "$@"; else run "$@"; fi
    [[ -e $output ]] || die "$name ended without an error, but $output does not exist"
    mkdir -p "$RUN_DIR/.done"
    printf '%s\n' "$now" > "$done_file.partial"
    mv "$done_file.partial" "$done_file"
    record "$name" "$commands"
    note "$name: done"
}

# activate: put the repository's .venv first on PATH, unless an environment is active.
activate() {
    local tool
    if [[ -z ${VIRTUAL_ENV:-} && -x $REPO/.venv/bin/python3 ]]; then
        export VIRTUAL_ENV="$REPO/.venv" PATH="$REPO/.venv/bin:$PATH"
    fi
    for tool in python3 fairseq-train transformer-plugin; do
        command -v "$tool" > /dev/null ||
            die "there is no $tool ${VIRTUAL_ENV:+in the active environment $VIRTUAL_ENV or }on PATH:" \
                "run 'make install' in $REPO${VIRTUAL_ENV:+, and 'deactivate' that environment}"
    done
}

# load_experiment NAME: read recipes/experiments/NAME.sh; set EXPERIMENT, RUN_DIR, and DATA_DIR: the
# folder of raw/ clean/ subwords/ data-bin/, another than RUN_DIR where runs share one preparation.
load_experiment() {
    local wrong
    wrong="$(python3 "$REPO/recipes/check_names.py" "$1")" || exit 2
    [[ -z $wrong ]] || die "$wrong"
    EXPERIMENT=$1
    RUN_DIR="$RUNS/$1"
    # shellcheck source=/dev/null
    . "$REPO/recipes/experiments/$1.sh"
    : "${DATA_DIR:=$RUN_DIR}"
}

# whole_numbers NAME...: stop unless each of these variables is a whole number. Arithmetic of the
# shell would run commands within anything else.
whole_numbers() {
    local name
    for name in "$@"; do
        [[ ${!name} =~ ^(0|[1-9][0-9]{0,14})$ ]] || die "$name is '${!name}': expected a whole number"
    done
}

# needs NAME...: stop unless the experiment, or the environment, sets each of these.
needs() {
    local name
    for name in "$@"; do
        [[ -n ${!name:-} ]] ||
            die "recipes/experiments/$EXPERIMENT.sh does not set $name; toy.sh beside it does"
    done
}

# begin EXPERIMENT [--dry-run] [FLAG...]: what each verb does first. Other flags land in EXTRA.
begin() {
    local experiment=${1:-}
    case $experiment in
        '' | -*) printf 'usage: %s EXPERIMENT [--dry-run] [FLAGS OF THE TOOL]\n' "$0" >&2
            [[ $experiment == -h || $experiment == --help ]] && exit 0
            exit 2 ;;
    esac
    shift
    while (($#)); do
        if [[ $1 == --dry-run ]]; then DRY_RUN=1; else EXTRA+=("$1"); fi
        shift
    done
    export DRY_RUN RUNS
    activate
    load_experiment "$experiment"
}
