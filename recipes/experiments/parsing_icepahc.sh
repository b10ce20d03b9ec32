# shellcheck shell=bash disable=SC2034
# a small parser for a CPU, on the IcePaHC treebank; needs TREES
# TREES=ARCHIVE recipes/run.sh parsing_icepahc. Its F1 does not compare with the paper's: see
# docs/parsing.md.
TREEBANK=icepahc
SOURCE=words
TARGET=tree
: "${VOCAB_SIZE:=4000}"       # pieces of the words; the tokens of trees are symbols
: "${ARCH:=vaswani_small}"
: "${MAX_TOKENS:=2048}"
: "${MAX_EPOCH:=10}"
: "${WARMUP_UPDATES:=1000}"
: "${DROPOUT:=0.2}"
: "${BEAM:=21}"               # 6.3
: "${ALPHA:=0.3}"             # 6.3
: "${MAX_LEN_OWN:=300}"       # 6.3
TRAIN_FLAGS=(--untie-embeddings)
