# shellcheck shell=bash disable=SC2034,SC1091
# a small parser for a CPU, on the IcePaHC treebank; needs TREES
# TREES=ARCHIVE recipes/run.sh parsing_icepahc. Its F1 does not compare with the paper's: see
# docs/parsing.md.
: "${SUBSTITUTIONS:=0}"
: "${MAX_EPOCH:=10}"
: "${ONLY_TREES:=0}"          # its labels are also parts of speech, which the rule mistakes
. "$REPO/recipes/experiments/parsing_gum.sh"
TREEBANK=icepahc
