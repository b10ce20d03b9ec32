"""The best and the worst translations of a test set by sentence-level BLEU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sacrebleu.metrics import BLEU

from ...text_lines import read_parallel
from .word_differences import WORD


class Sentence(NamedTuple):
    """A line of the test set, numbered from 1, with its BLEU in per cent."""

    line: int
    bleu: float
    source: str
    reference: str
    translation: str


def translations(
    source: Path, reference: Path, hypotheses: Path, lowercase: bool = False
) -> list[Sentence]:
    """The sentences of a test set, in its order, with sacrebleu's sentence-level BLEU.

    Raises:
        OSError: a file is missing.
        ValueError: the files have different numbers of lines.
    """
    texts = read_parallel(source, reference, hypotheses)
    bleu = BLEU(lowercase=lowercase, effective_order=True)
    return [
        Sentence(i, bleu.sentence_score(hypothesis, [expected]).score, text, expected, hypothesis)
        for i, (text, expected, hypothesis) in enumerate(zip(*texts, strict=True), start=1)
    ]


def best_and_worst(
    sentences: Sequence[Sentence], count: int = 3
) -> tuple[list[Sentence], list[Sentence]]:
    """The ``count`` best, best first, and worst, worst first. Longer references win ties."""
    best = sorted(sentences, key=lambda s: (-s.bleu, -_length(s)))[:count]
    worst = sorted(sentences, key=lambda s: (s.bleu, -_length(s)))[:count]
    return best, worst


def most_different(
    one: Sequence[Sentence], other: Sequence[Sentence], count: int = 3
) -> list[tuple[Sentence, Sentence]]:
    """The ``count`` lines that most favour ``one``, then those that most favour ``other``, by the
    difference of sentence-level BLEU. Longer references win ties."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a.bleu != b.bleu]

    def order(pair: tuple[Sentence, Sentence]) -> tuple[float, int]:
        return -abs(pair[0].bleu - pair[1].bleu), -_length(pair[0])

    pairs.sort(key=order)
    ahead = [pair for pair in pairs if pair[0].bleu > pair[1].bleu]
    behind = [pair for pair in pairs if pair[0].bleu < pair[1].bleu]
    return ahead[:count] + behind[:count]


def _length(sentence: Sentence) -> int:
    return len(WORD.findall(sentence.reference))
