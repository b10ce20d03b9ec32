"""The scores of many outputs, including outputs that are not trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nltk import Tree

from .brackets import Counts, compared, right_branching
from .linear_trees import NotATree, constituents, rebuilt, repaired

SIGNATURE = "F1|evalb:COLLINS.prm"


def score(outputs: Sequence[Sequence[str]], gold: Sequence[Tree]) -> dict[str, Any]:
    """Compares outputs with gold trees: ``f1``, ``precision``, ``recall``, ``complete_match`` and
    ``tagging`` in per cent, where an output that is not a tree has no brackets; the same with such
    outputs ``repaired``; their number, ``no_tree``; and ``right_branching``, the F1 of that
    baseline."""
    labels = constituents(token for tokens in outputs for token in tokens)
    total, mended = Counts(), Counts()
    no_tree = 0
    for tokens, tree in zip(outputs, gold, strict=True):
        words = tree.leaves()
        try:
            found: Tree | None = rebuilt(tokens, words)
        except NotATree:
            found = None
            no_tree += 1
        total += compared(tree, found)
        mended += compared(tree, found or repaired(tokens, words, labels))
    return {
        **total.figures(),
        "signature": f"{SIGNATURE}|no tree:empty",
        "sentences": len(gold),
        "no_tree": no_tree,
        "repaired": {**mended.figures(), "signature": f"{SIGNATURE}|no tree:repaired"},
        "right_branching": right_branching(gold).f1,
    }
