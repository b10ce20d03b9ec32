"""Saves and restores the counts of ``--patience``, which fairseq does not write to checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NAMES = ("best", "num_runs")  # fairseq keeps the counts as attributes of its function
_counts: dict[str, Any] = {}


def watch(should_stop_early: Callable[..., bool]) -> None:
    """Sets the function of fairseq-train whose attributes are saved and restored."""
    global _counts
    _counts = vars(should_stop_early)


def counts() -> dict[str, Any]:
    """The best validation score and the number of validations since; empty before the first."""
    return {name: _counts[name] for name in _NAMES if name in _counts}


def restore(saved: dict[str, Any]) -> None:
    """Sets the counts that ``counts`` returned when the checkpoint was saved."""
    _counts.update(saved)


def has_run_out(patience: int) -> bool:
    """Whether ``--patience`` has already stopped training."""
    return 0 < patience <= counts().get("num_runs", 0)
