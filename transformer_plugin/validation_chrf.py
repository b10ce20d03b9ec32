"""chrF of the translations of valid that fairseq makes and scores with ``--eval-bleu``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import sacrebleu
from fairseq.logging import metrics
from sacrebleu.metrics import CHRF

_TOTAL = "_chrf_counts"  # fairseq does not print names with an underscore before them
_COUNTS = [f"{_TOTAL}_{i}" for i in range(3 * CHRF.CHAR_ORDER)]


@contextmanager
def scored_texts() -> Iterator[list[Sequence[str]]]:
    """Yields a list that receives translations and references when fairseq scores them, because
    fairseq returns neither."""
    texts: list[Sequence[str]] = []
    corpus_bleu = sacrebleu.corpus_bleu

    def listening(
        translations: Sequence[str], references: Sequence[Sequence[str]], **options: Any
    ) -> Any:
        texts.extend((translations, *references))
        return corpus_bleu(translations, references, **options)

    sacrebleu.corpus_bleu = listening  # type: ignore[assignment]
    try:
        yield texts
    finally:
        sacrebleu.corpus_bleu = corpus_bleu


def chrf_counts(translations: Sequence[str], references: Sequence[str]) -> dict[str, int]:
    """The matching n-grams of a batch, as numbers that fairseq adds up over batches and workers."""
    sentences = CHRF()._extract_corpus_statistics(translations, [references])
    return dict(zip(_COUNTS, map(sum, zip(*sentences, strict=True)), strict=True))


def log_chrf(logging_outputs: Sequence[dict[str, Any]]) -> None:
    """Logs ``chrf`` of all batches; nothing if they have no counts, as in training."""
    totals = [float(sum(log.get(name, 0) for log in logging_outputs)) for name in _COUNTS]
    if any(totals):
        metrics.log_scalar(_TOTAL, np.array(totals))
        metrics.log_derived("chrf", _chrf)


def _chrf(meters: Any) -> float:
    return round(CHRF()._compute_score_from_stats(list(meters[_TOTAL].sum)).score, 2)
