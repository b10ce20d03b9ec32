#!/usr/bin/env bash
# The picture of the README, from the demo's run: docs/pictures/make.sh [RUN]
# Needs Chromium (Debian: apt install chromium) and an active .venv.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
run=${1:-runs/toy}
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

transformer-plugin attention --data "$run/data-bin" --path "$run/checkpoints/averaged.pt" \
    --text "Clara lends the sons many dresses every day." --output "$pages/attention.html"
chromium --headless --no-sandbox --hide-scrollbars --window-size=900,950 \
    --screenshot="$here/attention.png" \
    "file://$pages/attention.html#kind=encoder-decoder&layer=2" 2> /dev/null
