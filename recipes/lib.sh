# shellcheck shell=bash
# What every verb of recipes/ shares. Source it, then call `begin "$@"`:
#
#   set -euo pipefail
#   . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#   begin "$@"                  # EXPERIMENT [--dry-run] [flags that go to the tool, in EXTRA]
#   stage train "$RUN_DIR/checkpoints/checkpoint_last.pt" "$RUN_DIR/data-bin" -- \
#       logged "$RUN_DIR/train.log" fairseq-train "$RUN_DIR/data-bin" "${EXTRA[@]}"
#
# Sets REPO, and after `begin` or `load_experiment`: EXPERIMENT, RUN_DIR, DATA_DIR, PYTHON, DRY_RUN,
# EXTRA, and whatever recipes/experiments/EXPERIMENT.sh sets (CORPUS, SOURCE, TARGET, VOCAB_SIZE, ...).

REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
: "${RUNS:=$REPO/runs}"  # the folder that holds one folder per experiment
: "${DRY_RUN:=0}"        # 1: print the commands, run nothing
EXTRA=()

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
    if [[ $DRY_RUN == 1 ]]; then show "$@"; else "$@"; fi
}

# logged LOG CMD...: run CMD with stdout and stderr on the screen and in LOG (replaced when CMD
# starts, or with APPEND=1 added to); fails when CMD fails. SIGTERM, SIGINT and SIGUSR1 go on to CMD,
# as SIGTERM, and set STOPPED.
logged() {
    local log=$1 screen writer child status
    shift
    if [[ $DRY_RUN == 1 ]]; then
        printf '%s 2>&1 | tee %q\n' "$(show "$@")" "$log"
    else
        mkdir -p "$(dirname "$log")"
        exec {screen}> >(trap '' TERM INT USR1; tee ${APPEND:+-a} "$log" | on_screen)
        writer=$!
        "$@" >&"$screen" 2>&1 {screen}>&- &
        child=$!
        exec {screen}>&-
        trap 'STOPPED=1; kill -TERM $child' TERM INT USR1
        while status=0; wait "$child" || status=$?; kill -0 "$child" 2> /dev/null; do :; done
        trap - TERM INT USR1
        wait "$writer"
        return "$status"
    fi
}

# on_screen: copy to stdout; to a terminal, lines of progress as a bar with the time left. Nothing
# that happens to the bar may stop what writes to it.
on_screen() {
    if [[ -t 1 ]]; then transformer-plugin progress || cat; else cat; fi
}

# capture FILE CMD...: run CMD and put its stdout into FILE, which appears only when CMD succeeds;
# its stderr goes on the screen and into FILE.stderr.
capture() {
    local file=$1 messages writer
    shift
    if [[ $DRY_RUN == 1 ]]; then
        printf '%s > %q\n' "$(show "$@")" "$file"
    else
        mkdir -p "$(dirname "$file")"
        exec {messages}> >(exec tee "$file.stderr" >&2)
        writer=$!
        "$@" > "$file.partial" 2>&"$messages" {messages}>&- || { rm -f "$file.partial"; return 1; }
        exec {messages}>&-
        wait "$writer"
        mv "$file.partial" "$file"
    fi
}

# record STAGE COMMANDS [STATUS]: note in RUN_DIR/manifest.json what was run and what came of it.
record() {
    [[ $DRY_RUN == 1 || -n ${node:-} ]] || "${PYTHON:-python3}" "$REPO/recipes/manifest.py" \
        "$RUN_DIR" --data "${DATA_DIR:-$RUN_DIR}" --stage "$1" --commands "$2" --status "${3:-0}"
}

# fingerprint PATH...: one hash of the contents of files and folders (logs, hidden and partial
# files aside). The paths themselves do not count, so a run directory may move.
fingerprint() {
    local path
    for path in "$@"; do
        if [[ -d $path ]]; then
            (cd "$path" && find . -type f ! -name '*.log' ! -name '.*' ! -name '*.partial' -print0 |
                LC_ALL=C sort -z | xargs -0 -r sha256sum)
        elif [[ -f $path ]]; then
            sha256sum < "$path"
        else
            die "$path is missing: it is an input of this stage; run the stages before it first"
        fi
    done | sha256sum | cut -d ' ' -f 1
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
    contents="$(fingerprint "${inputs[@]}")" || exit 2
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
    "$@"
    [[ -e $output ]] || die "$name ended without an error, but $output does not exist"
    mkdir -p "$RUN_DIR/.done"
    printf '%s\n' "$now" > "$done_file.partial"
    mv "$done_file.partial" "$done_file"
    record "$name" "$commands"
    note "$name: done"
}

# activate: put the repository's .venv first on PATH, unless an environment is active; set PYTHON.
activate() {
    if [[ -z ${VIRTUAL_ENV:-} && -x $REPO/.venv/bin/python ]]; then
        export VIRTUAL_ENV="$REPO/.venv" PATH="$REPO/.venv/bin:$PATH"
    fi
    : "${PYTHON:=python3}"
    command -v "$PYTHON" > /dev/null || die "no $PYTHON on PATH: run 'make install' first"
}

# load_experiment NAME: read recipes/experiments/NAME.sh; set EXPERIMENT, RUN_DIR, and DATA_DIR: the
# folder of raw/ clean/ subwords/ data-bin/, another than RUN_DIR where runs share one preparation.
load_experiment() {
    local file="$REPO/recipes/experiments/$1.sh" known
    if [[ ! -f $file ]]; then
        known="$(find "$REPO/recipes/experiments" -name '*.sh' -exec basename {} .sh \; | sort | tr '\n' ' ')"
        die "there is no experiment '$1'; known: $known(one file each in recipes/experiments/)"
    fi
    EXPERIMENT=$1
    RUN_DIR="$RUNS/$1"
    # shellcheck source=/dev/null
    . "$file"
    : "${DATA_DIR:=$RUN_DIR}"
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
    load_experiment "$experiment"
    activate
}
