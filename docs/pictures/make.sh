#!/usr/bin/env bash
# The pictures of the pages, from the demo's run: docs/pictures/make.sh [RUN]
# Needs Chromium (Debian: apt install chromium) and an active .venv.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
run=${1:-runs/toy}
sentence="Clara lends the sons many dresses every day."
pages=$(mktemp -d)
service=
trap '[[ -z $service ]] || kill "$service"; rm -rf "$pages"' EXIT

picture() {  # picture NAME WIDTH HEIGHT ADDRESS
    chromium --headless --no-sandbox --hide-scrollbars --virtual-time-budget=10000 \
        --window-size="$2,$3" --screenshot="$here/$1.png" "$4" 2> /dev/null
}

transformer-plugin attention --data "$run/data-bin" --path "$run/checkpoints/averaged.pt" \
    --text "$sentence" --output "$pages/attention.html"
picture attention 900 950 "file://$pages/attention.html#kind=encoder-decoder&layer=2"

transformer-plugin report "$run" --output "$pages/report.html"
picture report 1280 1640 "file://$pages/report.html"

transformer-plugin serve "$run/data-bin" --path "$run/checkpoints/averaged.pt" --port 0 \
    > "$pages/address" &
service=$!
until [[ -s $pages/address ]]; do
    kill -0 "$service"
    sleep 0.2
done
read -r address _ < "$pages/address"
picture serve 900 1130 "$address/#text=${sentence// /%20}"
