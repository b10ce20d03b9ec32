#!/usr/bin/env bash
# average.sh EXPERIMENT [--dry-run] [FLAGS OF transformer-plugin average]
# Averages the last checkpoints of an experiment.
set -euo pipefail
# shellcheck source=recipes/lib.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/lib.sh"
begin "$@"

by=epochs
[[ -z $SAVE_UPDATES ]] || by=updates

stage average --output "$RUN_DIR/checkpoints/averaged.pt" \
    --input "$RUN_DIR/checkpoints/checkpoint_last.pt" --about "the last $AVERAGE checkpoints" -- \
    transformer-plugin average --last "$AVERAGE" --by $by --allow-fewer \
    --checkpoints "$RUN_DIR/checkpoints" --output "$RUN_DIR/checkpoints/averaged.pt" \
    "${EXTRA[@]}"
perform
