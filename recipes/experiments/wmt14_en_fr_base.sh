# shellcheck shell=bash disable=SC2034
# the paper's base model, English to French (Table 2)
CORPUS=wmt14_en_fr
SOURCE=en
TARGET=fr
: "${VOCAB_SIZE:=32000}"     # section 5.1
: "${ARCH:=vaswani_base}"
: "${MAX_TOKENS:=4096}"      # slots of a batch on one GPU, as tensor2tensor counted them
: "${UPDATE_TOKENS:=32768}"  # 4,096 slots x the paper's 8 GPUs: about 25,000 tokens a side (5.1)
: "${MAX_UPDATE:=100000}"    # section 5.2
: "${SAVE_UPDATES:=1500}"    # 10 minutes of the paper's 0.4 s an update
: "${AVERAGE:=5}"            # section 6.1
: "${PRECISION:=fp16}"       # on a CPU: PRECISION=bf16
