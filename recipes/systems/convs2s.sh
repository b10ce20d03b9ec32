# shellcheck shell=bash disable=SC2034
# ConvS2S (Gehring et al., 2017) in fairseq, as its examples/translation/README.md (WMT) and
# docs/getting_started.rst (IWSLT14) train it; batches and subwords are the experiment's.
: "${DROPOUT:=0.2}"
case $EXPERIMENT in
    wmt14_en_fr*) : "${ARCH:=fconv_wmt_en_fr}" ;;
    wmt14_*) : "${ARCH:=fconv_wmt_en_de}" ;;
    *) : "${ARCH:=fconv_iwslt_de_en}" ;;
esac
# the small shape of multi30k_table2 and iwslt14_table2
TABLE2_SHAPE=(--encoder-embed-dim 128 --decoder-embed-dim 128 --decoder-out-embed-dim 128
    --encoder-layers '[(128, 3)] * 4' --decoder-layers '[(128, 3)] * 3'
    --share-input-output-embed)
learning() {
    : "${LEARNING_RATE:=$([[ $ARCH == fconv_wmt_* ]] && echo 0.5 || echo 0.25)}"
    learning=(--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer nag
        --clip-norm 0.1 --lr-scheduler fixed --force-anneal 50 --lr "$LEARNING_RATE")
}
