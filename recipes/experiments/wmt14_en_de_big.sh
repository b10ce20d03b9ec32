# shellcheck shell=bash disable=SC2034,SC1091
# the paper's big model, English to German (Table 2)
: "${ARCH:=vaswani_big}"
: "${MAX_UPDATE:=300000}"  # section 5.2
: "${SAVE_UPDATES:=600}"   # 10 minutes of the paper's 1.0 s an update
: "${AVERAGE:=20}"         # section 6.1
. "$REPO/recipes/experiments/wmt14_en_de_base.sh"
