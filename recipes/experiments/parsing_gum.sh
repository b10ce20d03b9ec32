# shellcheck shell=bash disable=SC2034
# a small parser for a CPU, on the GUM treebank; needs TREES
# TREES=ARCHIVE recipes/run.sh parsing_gum. Its F1 does not compare with the paper's: see
# docs/parsing.md.
[[ $SYSTEM == transformer ]] ||
    die "SYSTEM is '$SYSTEM': this experiment is for the plugin's Transformer only"
TREEBANK=gum
SOURCE=words
TARGET=tree
: "${VOCAB_SIZE:=9000}"       # pieces: most words are one, which makes them easier to count
: "${ARCH:=vaswani_tiny}"     # with the sizes of TRAIN_FLAGS below: 3 + 3 layers, d_ff 512
: "${SUBSTITUTIONS:=12}"      # 12 variants of each of 9,553 sentences
: "${MAX_TOKENS:=1024}"       # about 7,100 updates an epoch; larger ones learn less in an epoch
: "${MAX_EPOCH:=5}"
: "${SAVE_UPDATES:=1000}"
: "${WARMUP_UPDATES:=1000}"
: "${LR_FACTOR:=0.6}"         # with 1 and twice the batch the decoder ignores the source for longer
: "${DROPOUT:=0.1}"
: "${BEAM:=21}"               # 6.3
: "${ALPHA:=0.3}"             # 6.3
: "${MAX_LEN_OWN:=300}"       # 6.3
: "${ONLY_TREES:=1}"          # 6.3 has no such rule
TRAIN_FLAGS=(--untie-embeddings --encoder-layers 3 --decoder-layers 3 --d-ff 512)
