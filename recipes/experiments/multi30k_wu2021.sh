# shellcheck shell=bash disable=SC2034
# the text-only Transformer-Tiny of Wu et al. (2021) on Multi30k; SYSTEM=fairseq is the control
# Wu et al., Good for Misconceived Reasons (ACL 2021): 41.02 BLEU of tokens in lower case.
#   for system in transformer fairseq; do
#       SYSTEM=$system SEEDS="1 2 3" recipes/run.sh multi30k_wu2021
#   done
case $SYSTEM in
    transformer)
        : "${ARCH:=vaswani_tiny}"
        TRAIN_FLAGS=(--encoder-layers 4 --decoder-layers 4 --initialisation fairseq) ;;  # results.md
    fairseq)
        : "${LEARNING_RATE:=0.005}"
        TRAIN_FLAGS=(--encoder-layers 4 --decoder-layers 4
            --encoder-embed-dim 128 --decoder-embed-dim 128
            --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256
            --encoder-attention-heads 4 --decoder-attention-heads 4) ;;
    *) die "SYSTEM is '$SYSTEM': expected transformer or fairseq" ;;
esac
: "${SUBWORDS:=moses-bpe}"
: "${MERGES:=10000}"
: "${LOWERCASE:=1}"
: "${MAX_TOKENS:=4096}"
: "${UPDATE_TOKENS:=8192}"   # their command trains on two GPUs; on more, lower MAX_TOKENS
: "${MAX_UPDATE:=8000}"
: "${MAX_EPOCH:=150}"        # more than those of 8,000 updates, 130
: "${WARMUP_UPDATES:=2000}"
: "${LR_FACTOR:=2.53}"        # the peak is 0.005: 128^-0.5 * 2000^-0.5 is 0.00198
: "${DROPOUT:=0.3}"
: "${PATIENCE:=10}"
: "${AVERAGE:=10}"
: "${BEAM:=5}"
: "${ALPHA:=0.6}"             # 6.1
# shellcheck source=recipes/experiments/multi30k_en_de.sh
. "$REPO/recipes/experiments/multi30k_en_de.sh"
