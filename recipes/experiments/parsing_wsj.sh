# shellcheck shell=bash disable=SC2034
# section 6.3: parsing the Wall Street Journal; needs TREES
# TREES=.../parsed/mrg/wsj recipes/run.sh parsing_wsj. What the paper leaves open is as in the authors'
# release (transformer_parsing_base). They tuned the learning rate on section 22: sweep LR_FACTOR
# from 0.5 to 5.
[[ $SYSTEM == transformer ]] ||
    die "SYSTEM is '$SYSTEM': this experiment is for the plugin's Transformer only"
TREEBANK=wsj
SOURCE=words
TARGET=tree
: "${VOCAB_SIZE:=16000}"      # pieces of the words, 6.3; the tokens of trees are symbols
: "${ARCH:=vaswani_base}"     # d_ff 2048 and 8 heads; the rest by flags below
: "${MAX_TOKENS:=}"           # padded tokens of a batch; empty: 4,096, or more on a GPU that has room
: "${UPDATE_TOKENS:=32768}"   # 4,096 padded tokens on each of 8 GPUs
: "${MAX_UPDATE:=100000}"
: "${SAVE_UPDATES:=1000}"
: "${WARMUP_UPDATES:=16000}"
: "${LR_FACTOR:=5}"
: "${DROPOUT:=0.2}"
: "${BEAM:=21}"               # 6.3
: "${ALPHA:=0.3}"             # 6.3
: "${MAX_LEN_OWN:=300}"       # 6.3
TRAIN_FLAGS=(--encoder-layers 4 --decoder-layers 4 --d-model 1024 --attention-dropout 0.2
    --untie-embeddings)
