"""Reads the trees of a treebank with nltk and normalises them.

Normalised trees have a root ``TOP``, labels of constituents without functions and indices
(``NP-SBJ-1`` is ``NP``), no empty elements, and no constituents that contain nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from nltk import Tree

from ..text_lines import decode
from .linear_trees import DEEPEST, ROOT, is_word

_ROOTS = ("", ROOT, "ROOT", "S1", "VROOT")  # any other label is a constituent's


def read_trees(path: Path, style: str) -> Iterator[tuple[int, Tree | None]]:
    """The line number and normalised form of each tree of a file; None if a tree has no words.

    Args:
        style: a key of ``STYLES``.

    Raises:
        ValueError: a tree is invalid; the message has the file and line.
    """
    plain = STYLES[style]
    for line, text in _bracketed(path):
        try:
            tree = Tree.fromstring(text)
            children = plain(tree if tree.label() in _ROOTS else Tree(ROOT, [tree]))
        except ValueError as error:
            reason = str(error).split("\n")[0]
            raise ValueError(f"{path}:{line}: not a tree of style '{style}': {reason}") from None
        yield line, (Tree(ROOT, children) if children else None)


def _bracketed(path: Path) -> Iterator[tuple[int, str]]:
    """The texts from an outermost bracket to the one that closes it, with their line numbers."""
    depth, start = 0, 0
    lines: list[str] = []
    for number, raw in enumerate(path.read_bytes().split(b"\n"), start=1):
        line = decode(raw, path, number)
        if not depth and line.strip() and not line.lstrip().startswith("("):
            raise ValueError(f"{path}:{number}: expected '(', got '{line.strip()[:40]}'")
        begin = 0
        for i, character in enumerate(line):
            if character == "(":
                if not depth:
                    begin, start, lines = i, number, []
                depth += 1
                if depth > DEEPEST:
                    raise ValueError(f"{path}:{number}: brackets of more than {DEEPEST} levels")
            elif character == ")":
                depth -= 1
                if depth < 0:
                    raise ValueError(f"{path}:{number}: ')' closes nothing")
                if not depth:
                    yield start, "\n".join([*lines, line[begin : i + 1]])
                    begin = i + 1
        if depth:
            lines.append(line[begin:])
        elif line[begin:].strip():
            raise ValueError(f"{path}:{number}: '{line[begin:].strip()[:40]}' is outside a tree")
    if depth:
        raise ValueError(f"{path}:{start}: a bracket is not closed before the end of the file")


def without_functions(label: str) -> str:
    """``NP`` for ``NP-SBJ-1``, as EVALB compares labels; ``-LRB-`` is unchanged."""
    for mark in "-=":
        if mark in label[1:]:
            label = label[0] + label[1:].split(mark)[0]
    return label


def _penn(tree: Tree) -> list[Tree]:
    """The children of the root, for the Penn treebank and GUM."""
    return _children(tree, lambda leaf: None if leaf.label() == "-NONE-" else leaf)


def _icepahc(tree: Tree) -> list[Tree]:
    """The same for IcePaHC. Its leaves are word-lemma; ``0`` and ``*...`` are empty elements; CODE
    and ID are not text."""

    def leaf(found: Tree) -> Tree | None:
        text = found[0]
        if text == "0" or text.startswith("*"):
            return None
        dashes = set(text) == {"-"}  # "---" is a dash whose lemma is a dash
        word = text[: len(text) // 2] if dashes else text.split("-")[0]
        return Tree(found.label(), [word or text])

    return _children(tree, leaf, left_out=("CODE", "ID"))


def _children(
    tree: Tree, leaf: Callable[[Tree], Tree | None], left_out: tuple[str, ...] = ()
) -> list[Tree]:
    """The normalised children; those without words are omitted."""
    found = []
    for child in tree:
        if isinstance(child, str):
            raise ValueError(f"the word '{child}' has no part of speech of its own")
        if child.label() in left_out:
            continue
        if is_word(child):
            kept = leaf(child)
        else:
            below = _children(child, leaf, left_out)
            kept = Tree(without_functions(child.label()), below) if below else None
        if kept is not None:
            found.append(kept)
    return found


STYLES: dict[str, Callable[[Tree], list[Tree]]] = {"penn": _penn, "icepahc": _icepahc}
