"""Finds the words in which a translation and its reference differ."""

from __future__ import annotations

import difflib
import itertools
import re
from typing import NamedTuple

# Chinese and Japanese have no spaces: there a character counts as a word.
_NO_SPACES = "\u3040-\u30ff\u3400-\u9fff"
WORD = re.compile(rf"[{_NO_SPACES}]|[^\W{_NO_SPACES}]+")
_TOKEN = re.compile(rf"{WORD.pattern}|[^\w\s]")


class Span(NamedTuple):
    """A piece of a sentence; ``differs`` if the other sentence does not have it."""

    text: str
    differs: bool


def differences(
    reference: str, translation: str, lowercase: bool = False
) -> tuple[list[Span], list[Span]]:
    """Both sentences as spans, which joined are the sentence.

    Args:
        lowercase: ignore case.
    """
    texts = (reference, translation)
    tokens = [list(_TOKEN.finditer(text)) for text in texts]
    words = [[token[0].lower() if lowercase else token[0] for token in of] for of in tokens]
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    blocks = matcher.get_matching_blocks()
    found = []
    for side, (text, of) in enumerate(zip(texts, tokens, strict=True)):
        same = {block[side] + i for block in blocks for i in range(block.size)}
        found.append(_spans(text, [(m.start(), m.end(), i not in same) for i, m in enumerate(of)]))
    return found[0], found[1]


def _spans(text: str, tokens: list[tuple[int, int, bool]]) -> list[Span]:
    """Neighbouring tokens of one kind as one span; what is between two kinds has no mark."""
    spans, end = [], 0
    for differs, of in itertools.groupby(tokens, key=lambda token: token[2]):
        run = list(of)
        if differs:
            first, last = run[0][0], run[-1][1]
            spans += [Span(text[end:first], False), Span(text[first:last], True)]
            end = last
    spans.append(Span(text[end:], False))
    return [span for span in spans if span.text]
