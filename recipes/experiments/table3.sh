# shellcheck shell=bash disable=SC2034
# a row of the paper's Table 3, for example ROW=C2 recipes/run.sh table3
# newstest2013 with no averaging: ROW=base, A1 ... A4, B1, B2, C1 ... C7, D1 ... D4,
# E or big. All of them, on one preparation of the data:
#   for row in base A{1..4} B{1,2} C{1..7} D{1..4} E big; do ROW=$row recipes/run.sh table3; done
[[ $SYSTEM == transformer ]] ||
    die "SYSTEM is '$SYSTEM': this experiment is for the plugin's Transformer only"
CORPUS=wmt14_en_de
SOURCE=en
TARGET=de
: "${ROW:=base}"
RUN_DIR="$RUNS/table3/$ROW"
: "${DATA_DIR:=$RUNS/table3}"
: "${EVALUATE:=valid}"        # newstest2013
: "${AVERAGE:=1}"             # no averaging
: "${SAVE_UPDATES:=1000}"     # divides MAX_UPDATE: the last one is the end of training
: "${VOCAB_SIZE:=37000}"     # section 5.1
: "${MAX_TOKENS:=}"          # padded tokens of a batch; empty: 4,096, or more on a GPU that has room
: "${UPDATE_TOKENS:=32768}"  # 4,096 padded tokens x the paper's 8 GPUs: about 25,000 tokens a side (5.1)
case $ROW in
    base | big) : "${ARCH:=vaswani_$ROW}" ;;
    A[1-4] | B[12] | C[1-7] | D[1-4] | E) : "${ARCH:=vaswani_table3_${ROW,,}}" ;;
    *) die "ROW is '$ROW': expected base, A1 to A4, B1, B2, C1 to C7, D1 to D4, E or big" ;;
esac
case $ROW in
    big) : "${MAX_UPDATE:=300000}" ;;
    *) : "${MAX_UPDATE:=100000}" ;;
esac
