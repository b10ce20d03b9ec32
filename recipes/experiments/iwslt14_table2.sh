# shellcheck shell=bash disable=SC2034
# the systems of Table 2 on IWSLT14, each with 2 to 4 million parameters; SYSTEM chooses one
# All of them, three seeds each, as for multi30k_table2. Meant for a part of the corpus, which TRAIN
# names: docs/results.md.
: "${DATA_DIR:=$RUNS/iwslt14_de_en}"
: "${MAX_TOKENS:=2048}"
: "${MAX_EPOCH:=4}"
: "${WARMUP_UPDATES:=1000}"  # peak rate 128^-0.5 * 1000^-0.5 = 0.0028
: "${LR_FACTOR:=1}"
: "${DROPOUT:=0.2}"
: "${AVERAGE:=2}"
: "${BEAM:=4}"               # section 6.1
# shellcheck source=recipes/experiments/iwslt14_de_en.sh
. "$REPO/recipes/experiments/iwslt14_de_en.sh"
[[ $SYSTEM != fairseq ]] || die "SYSTEM is '$SYSTEM': expected transformer, convs2s or lstm"
TRAIN_FLAGS=("${TABLE2_SHAPE[@]}")
