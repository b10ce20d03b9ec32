# shellcheck shell=bash disable=SC2034
CORPUS=toy
SOURCE=en
TARGET=de
VOCAB_SIZE=2000  # nearly every word form of the grammar is one piece
MAX_RATIO=3      # every pair is good by construction
