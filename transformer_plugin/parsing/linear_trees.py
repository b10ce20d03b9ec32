"""Trees as sequences of tokens and back, as in the authors' release (wsj_parsing.py).

Depth first: a constituent ``X`` opens with the token ``X`` and closes with ``/X``; a part of speech
is one token; the words, which are the source sentence, and the root are omitted:

    (TOP (S (NP (PRP I)) (VP (VBP run)) (. .)))    is    S NP PRP /NP VP VBP /VP . /S

Deviation: a part of speech within an open constituent of the same label is written ``X*``. The
release's form would be ambiguous if labels are used for both, as in IcePaHC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from nltk import Tree

ROOT = "TOP"
UNKNOWN = "XX"  # part of speech of a word for which the output has none
DEEPEST = 128  # levels of nesting, because nltk recurses; GUM and IcePaHC have fewer than 50
_MARK = "*"


class NotATree(ValueError):
    """A sequence of tokens is not a tree of its sentence; the message gives the reason."""


def is_word(tree: Tree) -> bool:
    """Whether ``tree`` is a part of speech with its word."""
    return len(tree) == 1 and isinstance(tree[0], str)


def linearised(tree: Tree) -> list[str]:
    """The tokens of a tree, without its root and words.

    Raises:
        ValueError: a label has a form that tokens cannot represent.
    """
    return [token for child in tree for token in _tokens(child, ())]


def _tokens(tree: Tree, above: tuple[str, ...]) -> Iterator[str]:
    label = tree.label()
    if not label or label[0] == "/" or label[-1] == _MARK or len(label.split()) != 1:
        raise ValueError(f"the label '{label}': expected no '/' at its start and no '*' at its end")
    if is_word(tree):
        yield label + _MARK * (label in above)
        return
    yield label
    for child in tree:
        yield from _tokens(child, (*above, label))
    yield f"/{label}"


def rebuilt(tokens: Sequence[str], words: Sequence[str]) -> Tree:
    """The tree of ``tokens`` over ``words``, with the root.

    Raises:
        NotATree: the tokens are not a tree of ``words``.
    """
    open_items: list[str | Tree] = []  # a string: a part of speech, or the opening of a constituent
    for token in tokens:
        if not _closes(token):
            open_items.append(token)
        elif not _close(open_items, token[1:]):
            raise NotATree(f"'{token}' closes nothing, or more than {DEEPEST} levels of nesting")
    tree, found = _with_words(open_items, iter(words))
    if found != len(words):
        raise NotATree(f"{found} parts of speech for {len(words)} words")
    return tree


def repaired(tokens: Sequence[str], words: Sequence[str], labels: Set[str]) -> Tree:
    """A tree over ``words`` from any tokens; the result of ``rebuilt`` if they are a tree.

    Closing tokens without an opening one are ignored; open constituents are closed at the end;
    surplus parts of speech are ignored; words without one are children of the root, as ``XX``. Of
    constituents that are nested more than ``DEEPEST`` deep, the outer ones are ignored.

    Args:
        labels: those that open a constituent.
    """
    try:
        return rebuilt(tokens, words)
    except NotATree:
        pass
    open_items: list[str | Tree] = []
    for token in tokens:
        if _closes(token):
            _close(open_items, token[1:])
        else:
            open_items.append(token)
    for i in reversed(range(len(open_items))):
        item = open_items[i]
        if isinstance(item, str) and item in labels:
            children = open_items[i + 1 :]
            open_items[i:] = [Tree(item, children)] if _fits(children) else children
    tree, _ = _with_words(open_items, iter(words))
    left = list(words)[len(tree.leaves()) :]
    return Tree(ROOT, [*tree, *(Tree(UNKNOWN, [word]) for word in left)])


def constituents(tokens: Iterable[str]) -> set[str]:
    """The labels that some of the tokens close."""
    return {token[1:] for token in tokens if _closes(token)}


def _closes(token: str) -> bool:
    return len(token) > 1 and token[0] == "/"


def _close(items: list[str | Tree], label: str) -> bool:
    """Joins the last ``label`` in ``items`` and what follows it to a constituent, if possible."""
    for i in reversed(range(len(items) - 1)):
        if items[i] == label:
            children = items[i + 1 :]
            if fits := _fits(children):
                items[i:] = [Tree(label, children)]
            return fits
    return False


def _fits(children: Sequence[str | Tree]) -> bool:
    """Whether there are children, and a constituent of them has at most ``DEEPEST`` levels."""
    return bool(children) and Tree(ROOT, children).height() <= DEEPEST + 1


def _with_words(items: Sequence[str | Tree], words: Iterator[str]) -> tuple[Tree, int]:
    """The items below a root, each part of speech with its word as long as there are words; and the
    number of parts of speech."""
    found = 0

    def filled(item: str | Tree) -> Iterator[Tree]:
        nonlocal found
        if isinstance(item, Tree):
            children = [new for child in item for new in filled(child)]
            if children:
                yield Tree(item.label(), children)
            return
        found += 1
        for word in words:
            yield Tree(item.removesuffix(_MARK) or item, [word])
            return

    children = [new for item in items for new in filled(item)]
    return Tree(ROOT, children), found
