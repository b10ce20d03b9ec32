#!/usr/bin/env bash
# What a first 45 minutes on a GPU should show, in stages of at most nine minutes:
#   bench/gpu.sh [--dry-run] STAGE...
#     install  the environment, the doctor, the tests marked gpu
#     train    base: 4,096 and 25,000 padded tokens a batch, fp16 and bf16, with a profile
#     big      the same for big, at 25,000
#     compile  base at 25,000 in bf16, and with layers that torch compiles
#     decode   beam 4: the plugin with and without CUDA graphs, stock, CTranslate2 if it is installed
#     kernels  the same search, and without each of the kernels for a GPU
#     bleu     MINUTES of training with the plugin, and the score
#     stock    the same with stock fairseq; again with MINUTES=14 it continues
# The figures are JSON in OUT. A command that fails is named at the end, and the others are run. For a
# machine without a network, first on one that has it:
#     collect  PACK/wheels, for Python 3.12, and PACK/data.tar.xz, for the last four stages
set -euo pipefail
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.."
: "${OUT:=runs/gpu}"    # folder of the figures
: "${PACK:=.gpu}"       # folder of what `collect` leaves, and of the environment made from it
: "${MINUTES:=7}"       # minutes of training, from its start
: "${SIZE:=full}"       # tiny: a rehearsal on a CPU, of seconds
: "${CORPUS:=}"          # folder that collect reads: europarl-v7-slice, newstest2013 and 2014
STAGES=(install train big compile decode kernels bleu stock collect)
LIMIT=540               # seconds of a stage
MEBIBYTES=60            # that can travel with a call
DATA=wmt14_en_fr_base
FACTS='import json
from transformer_plugin.runs.machine import code, hardware, versions
print(json.dumps({"code": code(), "versions": versions(), "hardware": hardware()}, indent=1))'
OUT=$(realpath -m "$OUT") PACK=$(realpath -m "$PACK")

die() {
    printf 'gpu.sh: %s\n' "$*" >&2
    exit 2
}

run() {  # run COMMAND...: within what is left of the stage's time; a failure is noted
    printf '%q ' "$@" >&2
    printf '\n' >&2
    [[ $DRY_RUN != 1 ]] || return 0
    timeout --kill-after 10 "$((LIMIT > SECONDS ? LIMIT - SECONDS : 1))" "$@" ||
        failures+=("$stage, status $?: $*")
}

activate() {  # the environment of the wheels, if there are any, on top of the machine's packages
    local packages python=$PACK/venv/bin/python
    [[ $DRY_RUN != 1 && -d $PACK/wheels ]] || return 0
    if [[ ! -e $PACK/venv/made ]]; then
        rm -rf "$PACK/venv"
        python3 -m venv --without-pip "$PACK/venv"
        packages=$("$python" -c 'import site; print(site.getsitepackages()[0])')
        python3 -c 'import sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\n")' \
            > "$packages/machine.pth"
        pwd >> "$packages/machine.pth"
        "$python" -m pip install --quiet --no-index --no-deps --disable-pip-version-check \
            "$PACK"/wheels/*.whl
        script transformer-plugin transformer_plugin.cli
        script torchrun torch.distributed.run
        touch "$PACK/venv/made"
    fi
    export VIRTUAL_ENV=$PACK/venv PATH=$PACK/venv/bin:$PATH
}

script() {  # script NAME MODULE: as pip would install it
    printf '#!%s\nimport sys\nfrom %s import main\nsys.exit(main())\n' "$python" "$2" \
        > "$PACK/venv/bin/$1"
    chmod +x "$PACK/venv/bin/$1"
}

describe() {  # code, versions and hardware, beside the figures
    [[ $DRY_RUN != 1 ]] || return 0
    python3 -c "$FACTS" > "$OUT/machine.json"
    [[ $device == cpu ]] || python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
        die "torch sees no GPU (SIZE=tiny rehearses on a CPU)"
}

unpack() {  # the data of decode, kernels, bleu and stock
    [[ $DRY_RUN != 1 && ! -d $PACK/$DATA ]] || return 0
    [[ -e $PACK/data.tar.xz ]] || die "$PACK/data.tar.xz: no such file: run bench/gpu.sh collect"
    tar -C "$PACK" -xJf "$PACK/data.tar.xz"
}

measure() {  # measure NAME ARCH SLOTS FLAGS...
    run python3 bench/train.py --arch "$2" --max-tokens "$3" --data synthetic --device "$device" \
        --json "$OUT/$1_$2_$3.json" "${measured[@]}" "${@:4}"
}

to_bleu() {  # to_bleu SYSTEM MINUTES
    run python3 bench/time_to_bleu.py "$1" --minutes "$2" --data-bin "$PACK/$DATA/data-bin" \
        --reference "$PACK/$DATA/raw/test.fr" --work "$PACK/runs" --device "$device" "${trained[@]}"
}

bleu() {  # bleu SYSTEM
    unpack
    to_bleu "$1" "$MINUTES"
    run cp "$PACK/runs/$1/score.json" "$OUT/bleu_$1_$MINUTES.json"
}

stage_install() {
    local tests
    run transformer-plugin doctor
    mapfile -t tests < <(grep -rl --include='test_*.py' pytest.mark.gpu tests)
    run python3 -m pytest -q -m gpu --numprocesses 4 --dist loadfile --junitxml "$OUT/tests.xml" \
        "${tests[@]}"
}

stage_train() {
    measure train "$base" "$small" --peers torch
    measure train "$base" "$large" --peers torch --profile "$OUT/profile_${base}_$large.json"
}

stage_big() {
    measure train "$big" "$large" --peers torch --profile "$OUT/profile_${big}_$large.json"
}

stage_compile() { measure compile "$base" "$large" --peers none --compiled --precision "$half"; }

trained_model() {  # a model for searches
    unpack
    [[ -e $PACK/runs/plugin/averaged.pt ]] || to_bleu plugin "$enough"
}

stage_decode() {
    trained_model
    run python3 bench/decode.py --path "$PACK/runs/plugin/averaged.pt" --beam 4 --without-graphs \
        --data-bin "$PACK/$DATA/data-bin" --device "$device" --peers ctranslate2 "${decoded[@]}" \
        --json "$OUT/decode.json"
}

stage_kernels() {
    trained_model
    run python3 bench/kernels.py --path "$PACK/runs/plugin/averaged.pt" --precision bf16 \
        --data-bin "$PACK/$DATA/data-bin" --device "$device" --only cuda/ --rounds 3 \
        --json "$OUT/kernels.json"
}

stage_bleu() { bleu plugin; }

stage_stock() { bleu stock; }

stage_collect() {
    local tags=(28 27 24 17 12 5) bytes
    local download=(python3 -m pip download --quiet --no-deps --only-binary=:all:
        --python-version 3.12 --implementation cp --constraint constraints.txt)
    for tag in "${tags[@]}"; do download+=(--platform "manylinux_2_${tag}_x86_64"); done
    [[ -n $CORPUS ]] || die "CORPUS is not set: name a folder with europarl-v7-slice, newstest2013" \
        "and newstest2014 in en and fr"
    LIMIT=7200
    run rm -rf "$PACK/wheels"
    # Without CTranslate2: it needs CUDA 12's cuBLAS, of 600 MB, which is no part of torch for CUDA 13.
    run "${download[@]}" --platform manylinux2014_x86_64 --dest "$PACK/wheels" bitarray \
        fairseq-fixed==0.12.3.1 filelock hydra-core numpy omegaconf sacremoses subword-nmt \
        tensorboardX
    run python3 -m pip wheel --quiet --no-deps --constraint constraints.txt \
        --wheel-dir "$PACK/wheels" antlr4-python3-runtime  # it has no wheel
    prepared=$(mktemp -d)
    trap 'rm -rf "$prepared"' EXIT
    run env RUNS="$prepared" TRAIN="$CORPUS/europarl-v7-slice" VALID="$CORPUS/newstest2013" \
        TEST="$CORPUS/newstest2014" recipes/prepare.sh "$DATA"
    run tar -C "$prepared" -cJf "$PACK/data.tar.xz" "$DATA/data-bin" "$DATA/raw/test.fr"
    [[ $DRY_RUN != 1 && ${#failures[@]} == 0 ]] || return 0
    bytes=$(du -sbc "$PACK/wheels" "$PACK/data.tar.xz" | tail -n 1 | cut -f 1)
    ((bytes <= MEBIBYTES << 20)) || die "$PACK/wheels and $PACK/data.tar.xz have $bytes bytes, more" \
        "than $MEBIBYTES MiB: take a smaller CORPUS"
}

case $SIZE in
    full) device=cuda base=vaswani_base big=vaswani_big small=4096 large=25000 enough=2 half=bf16
        measured=(--precision fp16 bf16 --rounds 5 --updates 8) trained=()
        decoded=(--precision fp16 bf16 --rounds 3 --latency 20) ;;
    tiny) device=cpu base=vaswani_tiny big=vaswani_small small=256 large=512 enough=0.05 half=fp32
        measured=(--precision fp32 --rounds 1 --updates 1 --words 100 --sentences 200)
        trained=(--arch vaswani_tiny --precision fp32 --max-tokens 500 --save-updates 1)
        decoded=(--precision fp32 --rounds 1 --beam 1 --latency 2) ;;
    *) die "SIZE is '$SIZE': expected full or tiny" ;;
esac
DRY_RUN=0
[[ ${1:-} != --dry-run ]] || { DRY_RUN=1; shift; }
(($#)) || die "which stage? ${STAGES[*]}"
for stage in "$@"; do
    [[ " ${STAGES[*]} " == *" $stage "* ]] || die "there is no stage '$stage': ${STAGES[*]}"
done
failures=()
for stage in "$@"; do
    SECONDS=0
    [[ $DRY_RUN == 1 ]] || mkdir -p "$OUT" "$PACK"
    printf '== %s\n' "$stage" >&2
    if [[ $stage != collect ]]; then
        activate
        describe
    fi
    "stage_$stage"
    printf '== %s: %s s\n' "$stage" "$SECONDS" >&2
done
((${#failures[@]} == 0)) || die "these commands failed:$(printf '\n  %s' "${failures[@]}")"
