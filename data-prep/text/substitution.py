"""Many trees from few, by substructure substitution (Shi, Livescu and Gimpel 2021): constituents of
a tree are replaced by others that have the same label."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from nltk import Tree

from transformer_plugin.parsing.linear_trees import ROOT, is_word

SHARE = 0.15  # share of constituents to replace, without those inside a replaced one


def with_substitutions(trees: Sequence[Tree], variants: int) -> list[Tree]:
    """The trees, followed by up to `variants` variants of each: constituents are replaced by others
    from any tree, drawn with seed 1. Variants with more words than the longest tree are omitted."""
    chance = random.Random(1)
    constituents: dict[str, list[Tree]] = defaultdict(list)
    for tree in trees:
        for constituent in tree.subtrees(lambda part: not is_word(part)):
            constituents[constituent.label()].append(constituent)

    def variant(tree: Tree) -> Tree:
        if is_word(tree):
            return tree
        if tree.label() != ROOT and chance.random() < SHARE:
            return chance.choice(constituents[tree.label()])
        return Tree(tree.label(), [variant(part) for part in tree])

    longest = max(len(tree.leaves()) for tree in trees)
    drawn = [variant(tree) for _ in range(variants) for tree in trees]
    return [*trees, *(tree for tree in drawn if len(tree.leaves()) <= longest)]
