# shellcheck shell=bash disable=SC2034
# the systems of Table 2 on Multi30k, each with 2 to 3 million parameters; SYSTEM chooses one
# All of them, three seeds each, on one preparation of the data:
#   for system in transformer convs2s lstm; do
#       SYSTEM=$system SEEDS="1 2 3" recipes/run.sh multi30k_table2
#   done
case $SYSTEM in
    transformer)
        : "${ARCH:=vaswani_tiny}"
        TRAIN_FLAGS=(--encoder-layers 4 --decoder-layers 4) ;;
    convs2s)
        TRAIN_FLAGS=(--encoder-embed-dim 128 --decoder-embed-dim 128 --decoder-out-embed-dim 128
            --encoder-layers '[(128, 3)] * 4' --decoder-layers '[(128, 3)] * 3'
            --share-input-output-embed) ;;
    lstm)
        TRAIN_FLAGS=(--encoder-embed-dim 128 --decoder-embed-dim 128 --decoder-out-embed-dim 128
            --share-decoder-input-output-embed) ;;
    *) die "SYSTEM is '$SYSTEM': expected transformer, convs2s or lstm" ;;
esac
: "${DATA_DIR:=$RUNS/multi30k_en_de}"
: "${MAX_EPOCH:=10}"  # 2,550 updates
: "${DROPOUT:=0.2}"
: "${ALPHA:=0.6}"     # section 6.1
# shellcheck source=recipes/experiments/multi30k_en_de.sh
. "$REPO/recipes/experiments/multi30k_en_de.sh"
