"""Saves and restores the counts of ``--patience``, which fairseq does not write to checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger(__name__)

_NAMES = ("best", "num_runs")  # fairseq keeps the counts as attributes of its function
_counts: dict[str, Any] = {}


def watch(should_stop_early: Callable[..., bool]) -> None:
    """Sets the function of fairseq-train whose attributes are saved and restored."""
    global _counts
    _counts = vars(should_stop_early)


def counts(metric: str) -> dict[str, Any]:
    """The best validation score by ``metric``, and the number of validations since then."""
    return {name: _counts[name] for name in _NAMES if name in _counts} | {"metric": metric}


def restore(extra_state: dict[str, Any], metric: str, continues: bool) -> None:
    """Restores the best score and the counts of a checkpoint, unless they are of another metric or
    another run.

    Args:
        extra_state: the checkpoint's, with what ``counts`` returned when it was saved. Its best
            score is removed if it is of another metric.
        continues: whether the run that saved the checkpoint continues.
    """
    saved = dict(extra_state.get("early_stopping", {}))
    before = saved.pop("metric", metric)
    if before == metric:
        if continues:
            _counts.update(saved)
    elif extra_state.pop("best", None) is not None:
        logger.info(
            "the best %s so far does not count for --best-checkpoint-metric %s", before, metric
        )


def has_run_out(patience: int) -> bool:
    """Whether ``--patience`` has already stopped training."""
    return 0 < patience <= _counts.get("num_runs", 0)
