# shellcheck shell=bash disable=SC2034
# fairseq's own Transformer, the control of the plugin's, as fairseq's examples/translation/README.md
# (IWSLT14) and examples/scaling_nmt/README.md (WMT) train one; batches and subwords are the experiment's.
case $EXPERIMENT in
    wmt14_en_fr_big) : "${ARCH:=transformer_vaswani_wmt_en_fr_big}" ;;
    wmt14_en_de_big) : "${ARCH:=transformer_vaswani_wmt_en_de_big}" ;;
    wmt14_*) : "${ARCH:=transformer_wmt_en_de}" ;;  # the base model
    multi30k_wu2021) : "${ARCH:=transformer}" ;;  # its shape is given by flags
    *) : "${ARCH:=transformer_iwslt_de_en}" ;;
esac
learning() {
    : "${LEARNING_RATE:=0.0005}"  # the peak
    learning=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam
        --adam-betas '(0.9, 0.98)' --lr-scheduler inverse_sqrt --warmup-updates "$WARMUP_UPDATES"
        --lr "$LEARNING_RATE" --share-all-embeddings)
}
