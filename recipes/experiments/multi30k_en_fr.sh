# shellcheck shell=bash disable=SC2034
CORPUS=multi30k
SOURCE=en
TARGET=fr
VOCAB_SIZE=8000
MAX_RATIO=2  # at 1.5, hundreds of good captions would go
