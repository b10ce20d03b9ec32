"""Finds the words in which a translation and its reference differ."""

from __future__ import annotations

import difflib
import itertools
from typing import NamedTuple

import regex

# Chinese and Japanese have no spaces: there a character counts as a word.
_NO_SPACES = "\u3040-\u30ff\u3400-\u9fff"
# After its first letter a word may have combining marks, such as vowel signs, and joiners.
WORD = regex.compile(
    rf"(?V1)[{_NO_SPACES}]"
    rf"|[[\p{{L}}\p{{N}}_]--[{_NO_SPACES}]][[\w\p{{N}}\u200c\u200d]--[{_NO_SPACES}]]*"
)
_TOKEN = regex.compile(rf"{WORD.pattern}|\S")


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
    words = [[token[0].lower() if lowercase else token[0] for token in side] for side in tokens]
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    blocks = matcher.get_matching_blocks()
    found = []
    for number, (text, side) in enumerate(zip(texts, tokens, strict=True)):
        same = {block[number] + i for block in blocks for i in range(block.size)}
        spans = [(match.start(), match.end(), i not in same) for i, match in enumerate(side)]
        found.append(_spans(text, spans))
    return found[0], found[1]


def _spans(text: str, tokens: list[tuple[int, int, bool]]) -> list[Span]:
    """Joins neighbouring tokens that differ into a span, and the text between such spans."""
    spans, end = [], 0
    for differs, group in itertools.groupby(tokens, key=lambda token: token[2]):
        if differs:
            run = list(group)
            first, last = run[0][0], run[-1][1]
            spans += [Span(text[end:first], False), Span(text[first:last], True)]
            end = last
    spans.append(Span(text[end:], False))
    return [span for span in spans if span.text]
