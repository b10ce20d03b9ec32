# shellcheck shell=bash disable=SC2034
# English to German by a grammar of a few hundred words; minutes on a CPU
CORPUS=toy
SOURCE=en
TARGET=de
: "${VOCAB_SIZE:=2000}"  # nearly every word form of the grammar is one piece
: "${MAX_RATIO:=3}"      # every pair is good by construction
: "${ARCH:=vaswani_tiny}"
: "${MAX_TOKENS:=2048}"
: "${MAX_EPOCH:=10}"
: "${WARMUP_UPDATES:=400}"
: "${LR_FACTOR:=1.5}"
