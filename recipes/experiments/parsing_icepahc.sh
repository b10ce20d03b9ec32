# shellcheck shell=bash disable=SC2034,SC1091
# a small parser for a CPU, on the IcePaHC treebank; needs TREES
# TREES=ARCHIVE recipes/run.sh parsing_icepahc. Its F1 does not compare with the paper's: see
# docs/parsing.md.
: "${SUBSTITUTIONS:=0}"
: "${MAX_EPOCH:=10}"
. "$REPO/recipes/experiments/parsing_gum.sh"
TREEBANK=icepahc
