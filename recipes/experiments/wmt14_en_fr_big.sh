# shellcheck shell=bash disable=SC2034,SC1091
# the paper's big model, English to French (Table 2)
: "${VOCAB_SIZE:=32000}"  # section 5.1
: "${ARCH:=vaswani_big_en_fr}"
. "$REPO/recipes/experiments/wmt14_en_de_big.sh"
CORPUS=wmt14_en_fr
TARGET=fr
