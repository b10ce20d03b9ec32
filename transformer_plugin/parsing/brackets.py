"""Labelled bracketing F1, as in EVALB with COLLINS.prm (Black et al., 1991; Collins, 1997).

A bracket is a constituent's label and the words that it spans. The root and punctuation do not
count; ADVP and PRT are the same label; constituents that span only punctuation are ignored.

Deviation: the gold tree decides which words are punctuation. EVALB uses each tree's own tags, and
skips the sentences in which these differ as errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nltk import Tree

from .linear_trees import is_word
from .treebank import without_functions

DELETED = frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."})
EQUAL = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]  # label, first word, word after the last


@dataclass(frozen=True)
class Counts:
    """The counts of one sentence, or their sums over many.

    Attributes:
        matched: brackets in both trees; ``gold`` and ``found`` count those of each tree.
        complete: sentences whose brackets all match.
        right_tags: correctly tagged words among ``words``, without punctuation.
    """

    matched: int = 0
    gold: int = 0
    found: int = 0
    sentences: int = 0
    complete: int = 0
    words: int = 0
    right_tags: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(vars(self)[name] + vars(other)[name] for name in vars(self)))

    @property
    def recall(self) -> float:
        """Matched share of the gold brackets, in per cent like all scores here."""
        return _percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Matched share of the brackets that were found."""
        return _percent(self.matched, self.found)

    @property
    def f1(self) -> float:
        """2 P R / (P + R), which is 2 matched / (gold + found)."""
        return _percent(2 * self.matched, self.gold + self.found)

    def figures(self) -> dict[str, float]:
        """The scores for score.json."""
        return {
            "f1": self.f1,
            "precision": self.precision,
            "recall": self.recall,
            "complete_match": _percent(self.complete, self.sentences),
            "tagging": _percent(self.right_tags, self.words),
        }


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def compared(gold: Tree, found: Tree | None) -> Counts:
    """The counts of one sentence; ``found`` is None, and counts as empty, for an invalid output.

    Raises:
        ValueError: the trees have different words.
    """
    leaves = list(_leaves(gold))
    counted = _counted(leaves)
    ours = _brackets(gold, counted)
    theirs: Counter[Bracket] = Counter()
    right_tags = 0
    if found is not None:
        if found.leaves() != gold.leaves():
            raise ValueError("the trees are of different sentences")
        theirs = _brackets(found, counted)
        pairs = zip(leaves, _leaves(found), counted, strict=True)
        right_tags = sum(_same(a.label()) == _same(b.label()) for a, b, word in pairs if word)
    return Counts(
        matched=(ours & theirs).total(),
        gold=ours.total(),
        found=theirs.total(),
        sentences=1,
        complete=int(found is not None and ours == theirs),
        words=sum(counted),
        right_tags=right_tags,
    )


def right_branching(gold: Sequence[Tree]) -> Counts:
    """The counts of a baseline: every word opens a constituent that reaches to the end of its
    sentence. The first bracket has the most frequent gold label of constituents that span the
    whole sentence, the others that of other sentence-final constituents. Tags count as wrong."""
    sentences = []
    labels: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for tree in gold:
        counted = _counted(_leaves(tree))
        brackets, end = _brackets(tree, counted), sum(counted)
        sentences.append((brackets, end))
        for (label, start, stop), number in brackets.items():
            if stop == end:
                labels[start == 0][label] += number
    first, rest = (next(iter(labels[one].most_common(1)), ("", 0))[0] for one in (True, False))
    total = Counts()
    for brackets, end in sentences:
        chain = Counter((rest if start else first, start, end) for start in range(end))
        total += Counts(
            matched=(brackets & chain).total(),
            gold=brackets.total(),
            found=chain.total(),
            sentences=1,
            complete=int(brackets == chain),
            words=end,
        )
    return total


def _counted(leaves: Iterable[Tree]) -> list[bool]:
    """Whether each word counts: whether it is not punctuation."""
    return [leaf.label() not in DELETED for leaf in leaves]


def _leaves(tree: Tree) -> Iterator[Tree]:
    return tree.subtrees(is_word)


def _same(label: str) -> str:
    return EQUAL.get(label, label)


def _brackets(tree: Tree, counted: Sequence[bool]) -> Counter[Bracket]:
    """The brackets and their number; ``counted`` is the result of ``_counted``."""
    found: Counter[Bracket] = Counter()
    words = iter(counted)
    place = 0

    def visit(node: Tree) -> None:
        nonlocal place
        if is_word(node):
            place += next(words)
            return
        start = place
        for child in node:
            visit(child)
        label = without_functions(node.label())
        if place > start and label not in DELETED:
            found[_same(label), start, place] += 1

    visit(tree)
    return found
