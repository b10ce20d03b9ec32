# shellcheck shell=bash disable=SC2034
CORPUS=multi30k
SOURCE=en
TARGET=de
VOCAB_SIZE=8000
MAX_RATIO=2  # German compounds: at 1.5, 888 captions would go, most of them good
