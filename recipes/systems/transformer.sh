# shellcheck shell=bash disable=SC2034
# The paper's: the plugin's Transformer with its optimizer, schedule and loss.
case $EXPERIMENT in
    *_table2)
        : "${ARCH:=vaswani_tiny}"
        TABLE2_SHAPE=(--encoder-layers 4 --decoder-layers 4) ;;
esac
learning() {
    learning=(--criterion vaswani_cross_entropy --optimizer vaswani_adam
        --lr-scheduler noam --warmup-updates "$WARMUP_UPDATES" --lr "$LR_FACTOR")
}
