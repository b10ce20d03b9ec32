# shellcheck shell=bash
# Functions shared by the scripts in recipes/. A script sets its variables, declares its stages and
# runs them:
#
#   set -euo pipefail
#   . "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"
#   begin "$@"                  # EXPERIMENT [--dry-run] [flags that go to the tool, in EXTRA]
#   stage train --output "$RUN_DIR/checkpoints/checkpoint_last.pt" --input "$DATA_DIR/data-bin" \
#       --log "$RUN_DIR/train.log" -- fairseq-train "$DATA_DIR/data-bin" "${EXTRA[@]}"
#   perform
#
# Sets REPO, and after `begin` EXPERIMENT, RUN_DIR, DATA_DIR, DRY_RUN, EXTRA, and whatever
# recipes/experiments/EXPERIMENT.sh sets (CORPUS, SOURCE, TARGET, VOCAB_SIZE, ...).

[[ $(type -t perform) != function ]] || return 0  # run.sh reads it once for all scripts
REPO=$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")  # without links, as Python spells it
SCRIPT=$(basename "$(realpath -m -- "$0")")
PLAN=() EXTRA=() WHOLE_RUN='' SUMMARY=''
: "${RUNS:=$REPO/runs}"  # the folder that holds one folder per experiment
RUNS=$(realpath -ms "$RUNS")  # one spelling of a folder, by which stages know that they are done
: "${DRY_RUN:=0}"        # 1: print the commands, run nothing
: "${NODE_RANK:=0}"      # number of this machine, where several train together
: "${VERBOSE:=0}"        # 1: show all that goes to the logs
: "${GOMP_SPINCOUNT:=3000}"  # turns that OpenMP's threads spin before they sleep; few, as cores are often shared
export VERBOSE GOMP_SPINCOUNT PYTHONUTF8=1  # fairseq writes its logs in the encoding of the locale

# die MSG: print what is wrong and stop with status 2.
die() {
    printf '%s: %s\n' "$SCRIPT" "$*" >&2
    exit 2
}

# note MSG: print a line of progress on stderr.
note() { printf '[%s] %s\n' "$EXPERIMENT" "$*" >&2; }

# stage NAME [OPTION...] -- CMD...: add a command to those that `perform` runs. Calls that follow each
# other with one NAME are one stage. A stage with an output is skipped when neither that, nor an
# input, nor the command has changed. Options:
#   --output FILE       the stage must write it
#   --input PATH        file or folder that the result depends on; several times
#   --ignore PATTERN    names of files in input folders that do not count; several times
#   --about TEXT        what the stage does, for the screen
#   --log FILE          both streams of CMD go there; the screen gets a summary
#   --stdout FILE       standard output goes there, when CMD has succeeded
#   --resumes           CMD continues from an output that is there, and adds to the log
#   --env NAME=VALUE    variable for CMD; several times
#   --prepares          CMD writes to DATA_DIR
stage() { PLAN+=("$#" "$@"); }

# perform: run the stages, in place of this shell, and end with a summary if SUMMARY is set; with
# --dry-run print their commands. Until they end, RUN_DIR is locked and DATA_DIR is not prepared again.
# Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP (a closed terminal) stop the command that runs: the status is 85.
perform() {
    [[ -z $WHOLE_RUN ]] || return 0  # run.sh performs the stages of all scripts
    local flags=()
    [[ $DRY_RUN != 1 ]] || flags=(--dry-run)
    [[ -z $SUMMARY ]] || flags+=(--summary)
    exec transformer-plugin recipe run --script "$SCRIPT" --experiment "$EXPERIMENT" \
        --run "$RUN_DIR" --data "$DATA_DIR" --node-rank "$NODE_RANK" \
        "${flags[@]}" "${PLAN[@]}"
}

# activate: put the repository's .venv first on PATH, unless an environment is active. A conda environment
# counts only if the plugin is installed in it, because conda's base is often active.
activate() {
    local tool conda=${CONDA_PREFIX:-/nowhere}/bin
    [[ -x $conda/fairseq-train && -x $conda/transformer-plugin ]] || conda=
    if [[ -z ${VIRTUAL_ENV:-}$conda && -x $REPO/.venv/bin/python3 ]]; then
        export VIRTUAL_ENV="$REPO/.venv" PATH="$REPO/.venv/bin:$PATH"
    fi
    for tool in python3 fairseq-train transformer-plugin; do
        command -v "$tool" > /dev/null ||
            die "there is no $tool ${VIRTUAL_ENV:+in the active environment $VIRTUAL_ENV or }on PATH:" \
                "run 'make install' in $REPO${VIRTUAL_ENV:+, and 'deactivate' that environment}"
    done
}

# load_experiment NAME: read recipes/experiments/NAME.sh; set EXPERIMENT, RUN_DIR, and DATA_DIR: the
# folder of raw/ clean/ subwords/ data-bin/. It differs from RUN_DIR if several runs share the data.
load_experiment() {
    transformer-plugin recipe check "$1" --recipes "$REPO/recipes" --script "$SCRIPT" || exit 2
    EXPERIMENT=$1
    RUN_DIR="$RUNS/$1"
    : "${SYSTEM:=transformer}"  # or fairseq's own: fairseq (its Transformer), convs2s, lstm
    [[ $SYSTEM =~ ^[a-z0-9]+$ && -e $REPO/recipes/systems/$SYSTEM.sh ]] ||
        die "SYSTEM is '$SYSTEM': expected transformer, fairseq, convs2s or lstm"
    # shellcheck source=/dev/null
    . "$REPO/recipes/systems/$SYSTEM.sh"
    local given_source=${SOURCE:-} given_target=${TARGET:-} given_corpus=${CORPUS:-${TREEBANK:-}}
    # shellcheck source=/dev/null
    . "$REPO/recipes/experiments/$1.sh"
    [[ ${given_source:-${SOURCE:-}}-${given_target:-${TARGET:-}} == "${SOURCE:-}-${TARGET:-}" ]] ||
        die "recipes/experiments/$1.sh sets SOURCE=$SOURCE and TARGET=$TARGET itself: for" \
            "${given_source:-$SOURCE}-${given_target:-$TARGET} write another experiment" \
            "(docs/language-pair.md)"
    local corpus=${CORPUS:-${TREEBANK:-}}
    [[ ${given_corpus:-$corpus} == "$corpus" ]] ||
        die "recipes/experiments/$1.sh is always on $corpus: for $given_corpus write another" \
            "experiment (docs/language-pair.md)"
    DATA_DIR=$(realpath -ms "${DATA_DIR:=$RUN_DIR}")
    usable_folders RUNS DATA_DIR
    [[ $SYSTEM == transformer ]] || RUN_DIR+="/$SYSTEM"
    : "${BASE:=}"       # checkpoint of another run: its model is fine-tuned (docs/fine-tuning.md)
    : "${BASE_DATA:=}"  # folder of its subwords/ and data-bin/; empty: that above its checkpoints/
    [[ -z $BASE ]] || find_base
    # Variables of several scripts; the defaults are section 6.1's.
    : "${SUBWORDS:=sentencepiece}"  # or moses-bpe, as in the literature
    : "${LOWERCASE:=0}"             # 1: text in lower case, and scores that ignore case
    : "${SAVE_UPDATES:=}"           # updates between checkpoints; empty: an epoch
    : "${AVERAGE:=5}"               # checkpoints that are kept, and averaged
    : "${EVALUATE:=test}"           # the set that is translated and scored
    : "${BEAM:=4}" "${ALPHA:=0.6}"  # beam size; alpha of the length penalty
    [[ $SUBWORDS =~ ^(sentencepiece|moses-bpe)$ ]] ||
        die "SUBWORDS is '$SUBWORDS': expected sentencepiece or moses-bpe"
    switches LOWERCASE DRY_RUN VERBOSE
    [[ -z ${TREEBANK:-} || $SUBWORDS$LOWERCASE == sentencepiece0 ]] ||
        die "SUBWORDS and LOWERCASE are not for parsing: unset them"
    expect '(valid|test)[0-9]*' 'valid or test, or one of several, such as test1' EVALUATE
    positive AVERAGE ${SAVE_UPDATES:+SAVE_UPDATES} BEAM
    decimals ALPHA
    : "${SEEDS:=}"  # as "1 2 3": a run for each, in RUN_DIR/seeds/seed1 and so on
    [[ -z $SEEDS || -n ${SEED:-} || $SCRIPT =~ ^(run|prepare)\.sh$ ]] ||
        die "SEEDS is '$SEEDS', which is for run.sh: give SEED too, to choose one of them"
    [[ -z $SEEDS ]] || RUN_DIR+="/seeds${SEED:+/seed$SEED}"
    : "${CHECKPOINT:=$RUN_DIR/checkpoints/averaged.pt}"  # what generate.sh and translate.sh take
}

# find_base: set BASE_DATA, and SUBWORDS to the kind of those of BASE.
find_base() {
    local kind=sentencepiece
    BASE=$(realpath -ms "$BASE")
    [[ -n $BASE_DATA ]] || BASE_DATA=$(dirname "$(dirname "$BASE")")
    if [[ ! $SCRIPT =~ ^(run|prepare|train)\.sh$ ]]; then  # the model is there; BASE may be gone
        [[ ! -e $DATA_DIR/subwords/joint.codes ]] || : "${SUBWORDS:=moses-bpe}"
        return 0
    fi
    if [[ ! -f $BASE ]]; then
        [[ $DRY_RUN != 1 ]] || return 0  # it may be trained first
        die "BASE is '$BASE': no such checkpoint"
    fi
    [[ -d $BASE_DATA/subwords && -d $BASE_DATA/data-bin ]] ||
        die "$BASE_DATA has no subwords/ and data-bin/: set BASE_DATA to the folder that has those" \
            "of BASE"
    [[ ! $BASE_DATA -ef $RUN_DIR && ! $BASE_DATA -ef $DATA_DIR ]] ||
        die "BASE is a checkpoint of this run, or of one on the same data, which would be prepared" \
            "again: set RUNS to another folder, or give the new run an experiment of its own in" \
            "recipes/experiments/"
    [[ ! -e $BASE_DATA/subwords/joint.codes ]] || kind=moses-bpe
    [[ ${SUBWORDS:=$kind} == "$kind" ]] || die "SUBWORDS is '$SUBWORDS', and that of BASE is $kind"
}

# shellcheck disable=SC2034
TF32=(--env TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1)  # flags of `stage`: fp32 products of a GPU by TF32

# expect PATTERN WHAT NAME...: stop unless the whole of each of these variables matches PATTERN.
expect() {
    local pattern=$1 what=$2 name
    for name in "${@:3}"; do
        [[ ${!name} =~ ^$pattern$ ]] || die "$name is '${!name}': expected $what"
    done
}

# Each takes the names of variables. They are checked because the shell's arithmetic would run commands
# in a value that is not a whole number.
whole_numbers() { expect '(0|[1-9][0-9]{0,14})' 'a whole number' "$@"; }
switches() { expect '[01]' '0 or 1' "$@"; }
decimals() { expect '-?([0-9]+\.?|[0-9]*\.[0-9]+)([eE][-+]?[0-9]+)?' 'a number' "$@"; }
at_least_zero() { decimals "$@"; expect '[^-].*' 'a number of at least 0' "$@"; }
fractions() { expect '(0+\.?|0*\.[0-9]+)' 'a number from 0 to below 1' "$@"; }

# usable_folders NAME...: stop unless fairseq can use the folders that these variables name.
usable_folders() {
    local name
    for name in "$@"; do
        [[ ${!name} != *:* ]] || die "$name is '${!name}': fairseq splits paths at a colon"
        [[ ${!name} != *"\${"* ]] || die "$name is '${!name}': fairseq would replace \${...} in it"
        iconv -f UTF-8 -t UTF-8 <<< "${!name}" &> /dev/null ||
            die "$name is $(printf '%q' "${!name}"): expected UTF-8; rename the folder"
    done
}

# positive NAME...: stop unless each of these variables is a whole number above 0.
positive() {
    local name
    whole_numbers "$@"
    for name in "$@"; do
        ((${!name})) || die "$name is 0: expected at least 1"
    done
}

# find_gpus: set gpus, the number of GPUs; half, their fastest precision; memory, GiB of the smallest.
# shellcheck disable=SC2034
find_gpus() {
    [[ -z ${gpus:-} ]] || return 0
    read -r gpus half memory <<< "$(transformer-plugin recipe gpus)"
    whole_numbers gpus memory
    [[ $half == fp32 || $SYSTEM == transformer ]] || half=fp16  # fairseq's own systems
}

# needs NAME...: stop unless the experiment, or the environment, sets each of these.
needs() {
    local name
    for name in "$@"; do
        [[ -n ${!name:-} ]] ||
            die "recipes/experiments/$EXPERIMENT.sh does not set $name; toy.sh beside it does"
    done
}

# usage: prints the comment at the head of the script.
usage() {
    sed -n '2s/^# /usage: recipes\//p; 3,/^[^#]/s/^# //p' "$0"
    echo "All variables are in docs/commands.md."
}

# begin EXPERIMENT [--dry-run] [FLAG...]: what each script does first. Other flags land in EXTRA.
begin() {
    [[ -z $WHOLE_RUN ]] || return 0  # run.sh has done it
    local experiment=${1:-}
    case $experiment in
        -h | --help) usage; exit ;;
        '' | -*) usage >&2; exit 2 ;;
    esac
    shift
    while (($#)); do
        case $1 in
            -h | --help) usage; exit ;;
            --dry-run) DRY_RUN=1 ;;
            *) EXTRA+=("$1") ;;
        esac
        shift
    done
    activate
    load_experiment "$experiment"
}
