# shellcheck shell=bash disable=SC2034
# The paper's: the plugin's Transformer with its optimizer, schedule and loss.
learning() {
    learning=(--criterion vaswani_cross_entropy --optimizer vaswani_adam
        --lr-scheduler noam --warmup-updates "$WARMUP_UPDATES" --lr "$LR_FACTOR")
}
