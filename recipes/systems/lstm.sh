# shellcheck shell=bash disable=SC2034
# An LSTM with attention in fairseq. It has no recipe there: optimizer and dropout are those of
# fairseq-lua's blstm, the loss is ConvS2S's.
: "${DROPOUT:=0.2}"
case $EXPERIMENT in
    wmt14_*) : "${ARCH:=lstm_luong_wmt_en_de}" ;;
    *) : "${ARCH:=lstm_wiseman_iwslt_de_en}" ;;
esac
: "${LEARNING_RATE:=0.0003125}"
learning() {
    learning=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam
        --lr-scheduler fixed --lr "$LEARNING_RATE")
}
