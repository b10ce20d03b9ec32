# shellcheck shell=bash disable=SC2034
# captions of photographs, English to German, 29,000 sentences; a small model
CORPUS=multi30k
SOURCE=en
TARGET=de
: "${VOCAB_SIZE:=8000}"
: "${MAX_RATIO:=2}"  # German compounds: at 1.5, 888 captions would go, most of them good
: "${ARCH:=vaswani_small}"
: "${MAX_TOKENS:=2048}"      # about 1,850 target words an update, 255 updates an epoch
: "${MAX_EPOCH:=40}"         # 10,200 updates
: "${WARMUP_UPDATES:=1000}"  # peak rate 256^-0.5 * 1000^-0.5 = 0.00198
: "${DROPOUT:=0.3}"          # 29,000 sentences are few
: "${ALPHA:=1.2}"            # for valid: docs/results.md
