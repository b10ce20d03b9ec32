# shellcheck shell=bash disable=SC2034
# the paper's base model, English to German (Table 2)
# VARIANT=v9 takes WMT14's own News Commentary instead of the paper's v11.
CORPUS=wmt14_en_de
SOURCE=en
TARGET=de
: "${VOCAB_SIZE:=37000}"     # section 5.1
: "${ARCH:=vaswani_base}"
: "${MAX_TOKENS:=}"          # padded tokens of a batch; empty: 4,096, or more on a GPU that has room
: "${UPDATE_TOKENS:=32768}"  # 4,096 padded tokens x the paper's 8 GPUs: about 25,000 tokens a side (5.1)
: "${MAX_UPDATE:=100000}"    # section 5.2
: "${SAVE_UPDATES:=1500}"    # 10 minutes of the paper's 0.4 s an update
: "${AVERAGE:=5}"            # section 6.1
