"""Breaks translations down: BLEU by sentence length, accuracy of words by training frequency."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sacrebleu.metrics import BLEU

from .word_differences import WORD

_LENGTH_GROUPS = 5
MOST_LINES = 5_000_000  # lines of the training text: about a minute
# The largest frequency of each group of words, and the group's name.
_FREQUENCIES = (
    (0, "never"), (1, "once"), (4, "2 to 4 times"), (9, "5 to 9"), (99, "10 to 99"),
    (999, "100 to 999"), (None, "1,000 or more"),
)  # fmt: skip


@dataclass(frozen=True)
class LengthGroup:
    """Sentences whose references have similar numbers of words.

    Attributes:
        bleu: BLEU of each system, in per cent.
        ratio: length of each system's translations over that of the references, in tokens.
    """

    name: str
    sentences: int
    bleu: list[float]
    ratio: list[float]


@dataclass(frozen=True)
class FrequencyGroup:
    """Words with similar frequencies in the training text.

    Attributes:
        words: number in the references.
        recall: share of them that each system's translation of the sentence has, in per cent.
        precision: share of each system's words of the group that the reference has, in per cent;
            None if it has no such word.
    """

    name: str
    words: int
    recall: list[float]
    precision: list[float | None]


def by_length(
    references: Sequence[str], systems: Sequence[Sequence[str]], lowercase: bool = False
) -> list[LengthGroup]:
    """BLEU of sentences of similar length; the groups have about the same number of sentences.

    Args:
        systems: the translations of each.
    """
    lengths = [len(WORD.findall(reference)) for reference in references]
    ordered = sorted(lengths)
    ends = sorted({ordered[(i + 1) * len(ordered) // _LENGTH_GROUPS - 1]
                   for i in range(_LENGTH_GROUPS)}) if ordered else []  # fmt: skip
    metric, groups, shortest = BLEU(lowercase=lowercase), [], ordered[0] if ordered else 0
    for longest in ends:
        lines = [i for i, length in enumerate(lengths) if shortest <= length <= longest]
        expected = [[references[i] for i in lines]]
        scores = [metric.corpus_score([texts[i] for i in lines], expected) for texts in systems]
        name = f"{shortest} to {longest}" if shortest < longest else str(longest)
        groups.append(
            LengthGroup(
                name,
                len(lines),
                [score.score for score in scores],
                [score.sys_len / max(1, score.ref_len) for score in scores],
            )
        )
        shortest = longest + 1
    return groups


def by_frequency(
    references: Sequence[str],
    systems: Sequence[Sequence[str]],
    training_text: Path,
    lowercase: bool = False,
) -> list[FrequencyGroup]:
    """Recall and precision of words by their frequency in the training text.

    A word counts as right as often as both sentences have it, wherever it stands.

    Args:
        training_text: target side, one sentence per line.

    Raises:
        OSError: the training text cannot be read.
    """
    expected, *found = [
        [_words(text, lowercase) for text in texts] for texts in (references, *systems)
    ]
    needed = {word for sentences in (expected, *found) for words in sentences for word in words}
    frequency = _frequencies(training_text, needed, lowercase)

    def totals(sentences: Iterable[Counter[str]]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for words in sentences:
            for word, count in words.items():
                counts[_group(frequency[word])] += count
        return counts

    wanted = totals(expected)
    given = [totals(system) for system in found]
    right = [totals(a & b for a, b in zip(expected, system, strict=True)) for system in found]
    return [
        FrequencyGroup(
            name,
            wanted[name],
            [100 * system[name] / wanted[name] for system in right],
            [100 * r[name] / g[name] if g[name] else None
             for r, g in zip(right, given, strict=True)],
        )
        for _, name in _FREQUENCIES
        if wanted[name]
    ]  # fmt: skip


def _words(text: str, lowercase: bool) -> Counter[str]:
    return Counter(WORD.findall(text.lower() if lowercase else text))


def _group(frequency: int) -> str:
    return next(name for most, name in _FREQUENCIES if most is None or frequency <= most)


def _frequencies(path: Path, needed: set[str], lowercase: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = itertools.islice(file, MOST_LINES)
        while text := "".join(itertools.islice(lines, 10_000)):
            words = WORD.findall(text.lower() if lowercase else text)
            counts.update(filter(needed.__contains__, words))
    return counts
