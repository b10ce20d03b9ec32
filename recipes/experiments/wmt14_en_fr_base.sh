# shellcheck shell=bash disable=SC2034,SC1091
# the paper's base model, English to French (Table 2)
: "${VOCAB_SIZE:=32000}"  # section 5.1
. "$REPO/recipes/experiments/wmt14_en_de_base.sh"
CORPUS=wmt14_en_fr
TARGET=fr
