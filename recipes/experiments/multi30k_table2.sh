# shellcheck shell=bash disable=SC2034
# the systems of Table 2 on Multi30k, each with 2 to 3 million parameters; SYSTEM chooses one
# All of them, three seeds each, on one preparation of the data:
#   for system in transformer convs2s lstm; do
#       SYSTEM=$system SEEDS="1 2 3" recipes/run.sh multi30k_table2
#   done
: "${DATA_DIR:=$RUNS/multi30k_en_de}"
: "${MAX_EPOCH:=10}"  # 2,550 updates
: "${DROPOUT:=0.2}"
: "${ALPHA:=0.6}"     # section 6.1
# shellcheck source=recipes/experiments/multi30k_en_de.sh
. "$REPO/recipes/experiments/multi30k_en_de.sh"
[[ $SYSTEM != fairseq ]] || die "SYSTEM is '$SYSTEM': expected transformer, convs2s or lstm"
TRAIN_FLAGS=("${TABLE2_SHAPE[@]}")
