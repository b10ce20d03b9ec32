"""Significance of differences between scores, with sacrebleu's paired tests."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Score
from sacrebleu.significance import PairedTest

TESTS = {"bootstrap": "bs", "randomisation": "ar"}  # sacrebleu's names
METRICS = {"bleu": BLEU, "chrf": CHRF}


class _OverSeeds:
    """The mean of the scores of seeds, for sentences with a translation of each seed:
    ``[sentence][seed]``."""

    def _extract_corpus_statistics(self, hypotheses: Any, references: Any) -> Any:
        extract = super()._extract_corpus_statistics  # type: ignore[misc]
        seeds = zip(*hypotheses, strict=True)
        statistics = [extract(list(each), references) for each in seeds]
        self._seeds = len(statistics)
        # sacrebleu's tests take one row for each sentence.
        return np.concatenate(statistics, axis=1).tolist()

    def _compute_score_from_stats(self, stats: Any) -> Any:
        compute = super()._compute_score_from_stats  # type: ignore[misc]
        scores = [compute(seed) for seed in np.split(np.asarray(stats), self._seeds)]
        return Score(scores[0].name, sum(score.score for score in scores) / len(scores))


class _BLEU(_OverSeeds, BLEU):
    pass


class _CHRF(_OverSeeds, CHRF):
    pass


_OVER_SEEDS = {"bleu": _BLEU, "chrf": _CHRF}


@dataclass(frozen=True)
class System:
    """Translations of one test set.

    Attributes:
        translations: ``[seed][sentence]``: a list for each training run of the system.
    """

    name: str
    translations: Sequence[Sequence[str]]


def seed_scores(
    systems: Sequence[System], references: Sequence[str], lowercase: bool = False
) -> list[dict[str, Any]]:
    """For each system and metric: the ``scores`` of its seeds, their ``mean``, and ``deviation``,
    the sample standard deviation (None for one seed)."""
    return [
        {"name": system.name, **{name: _seeds(system, references, metric(lowercase=lowercase))
                                 for name, metric in METRICS.items()}}
        for system in systems
    ]  # fmt: skip


def _seeds(system: System, references: Sequence[str], metric: Any) -> dict[str, Any]:
    scores = [metric.corpus_score(list(t), [list(references)]).score for t in system.translations]
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return {"scores": scores, "mean": statistics.fmean(scores), "deviation": deviation}


def paired_test(
    systems: Sequence[System],
    references: Sequence[str],
    test: str,
    lowercase: bool = False,
    samples: int = 0,
) -> dict[str, Any]:
    """Compares each system with the first, the baseline.

    Sentences are resampled or exchanged, each with its translations from all seeds: a translation
    from another seed is not a new sentence. What is tested is the mean of the seeds' scores.

    Args:
        systems: with the same number of seeds.
        test: "bootstrap", Koehn (2004), whose p from sacrebleu is about half a two-sided one,
            or "randomisation", Riezler and Maxwell (2005), two-sided.
        samples: 0: sacrebleu's defaults, 1,000 and 10,000.

    Returns:
        ``signatures`` by metric, and ``systems``: by metric the ``score``, its bootstrap ``mean``
        and ``ci``, half of the 95 % interval (None with randomisation), and the ``p_value`` (None
        for the baseline, 1 for a score that equals it).

    Raises:
        ValueError: the systems have different numbers of seeds.
    """
    seeds = {len(system.translations) for system in systems}
    if len(seeds) > 1:
        counts = ", ".join(f"{system.name} has {len(system.translations)}" for system in systems)
        raise ValueError(f"a paired test needs equal numbers of seeds: {counts}")
    metrics = {name: metric(lowercase=lowercase) for name, metric in _OVER_SEEDS.items()}
    named: list[tuple[str, Any]] = [
        (s.name, list(zip(*s.translations, strict=True))) for s in systems
    ]
    signatures, results = PairedTest(named, metrics, [list(references)], TESTS[test], samples)()
    names = dict(zip(METRICS, signatures, strict=True))  # sacrebleu's: BLEU, chrF2
    return {
        "signatures": {name: str(signatures[theirs]) for name, theirs in names.items()},
        "systems": [
            {
                "name": s.name,
                **{
                    name: _plain(results[theirs][i], results[theirs][0])
                    for name, theirs in names.items()
                },
            }
            for i, s in enumerate(systems)
        ],
    }


def _plain(result: Any, baseline: Any) -> dict[str, float | None]:
    """sacrebleu's result with Python's numbers in place of NumPy's, for JSON."""
    plain = {name: None if value is None else float(value) for name, value in vars(result).items()}
    if result is not baseline and result.score == baseline.score:
        plain["p_value"] = 1.0  # sacrebleu gives equal translations the smallest p
    return plain
