"""The best and the worst translations of a test set by sentence-level BLEU."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sacrebleu.metrics import BLEU

from ...scoring.text_lines import read_lines


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
    texts = {path: read_lines(path) for path in (source, reference, hypotheses)}
    if len({len(lines) for lines in texts.values()}) != 1:
        counts = ", ".join(f"{path} has {len(lines)}" for path, lines in texts.items())
        raise ValueError(f"not the same test set: {counts} lines")
    bleu = BLEU(lowercase=lowercase, effective_order=True)
    return [
        Sentence(i, bleu.sentence_score(hypothesis, [expected]).score, text, expected, hypothesis)
        for i, (text, expected, hypothesis) in enumerate(zip(*texts.values(), strict=True), start=1)
    ]


def best_and_worst(
    sentences: list[Sentence], count: int = 3
) -> tuple[list[Sentence], list[Sentence]]:
    """The ``count`` best, best first, and worst, worst first. Longer references win ties."""

    def long(sentence: Sentence) -> int:
        return -len(sentence.reference.split())

    best = sorted(sentences, key=lambda s: (-s.bleu, long(s)))[:count]
    worst = sorted(sentences, key=lambda s: (s.bleu, long(s)))[:count]
    return best, worst
