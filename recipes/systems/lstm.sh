# shellcheck shell=bash disable=SC2034
# An LSTM with attention in fairseq, which has no recipe for it. Optimizer and dropout are those of
# fairseq-lua's blstm; so is the learning rate, except on small corpora. The loss is ConvS2S's.
: "${DROPOUT:=0.2}"
case $EXPERIMENT in
    wmt14_*) : "${ARCH:=lstm_luong_wmt_en_de}" ;;
    *) : "${ARCH:=lstm_wiseman_iwslt_de_en}" ;;
esac
# the small shape of multi30k_table2 and iwslt14_table2
TABLE2_SHAPE=(--encoder-embed-dim 128 --decoder-embed-dim 128 --decoder-out-embed-dim 128
    --share-decoder-input-output-embed)
learning() {
    case $EXPERIMENT in
        multi30k_* | *_table2) : "${LEARNING_RATE:=0.004}" ;;  # docs/results.md
        *) : "${LEARNING_RATE:=0.0003125}" ;;
    esac
    learning=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam
        --lr-scheduler fixed --lr "$LEARNING_RATE")
}
