"""``--patience`` counts on where a stopped run left off, which fairseq forgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_COUNTS = ("best", "num_runs")  # fairseq keeps them as attributes of its function
_kept: dict[str, Any] = {}


def watch(should_stop_early: Callable[..., bool]) -> None:
    """Names the function of the running fairseq-train that counts."""
    global _kept
    _kept = vars(should_stop_early)


def counts() -> dict[str, Any]:
    """The best validation score so far and how many validations came after it; empty at first."""
    return {name: _kept[name] for name in _COUNTS if name in _kept}


def restore(saved: dict[str, Any]) -> None:
    """Goes on from what ``counts`` returned when a checkpoint was saved."""
    _kept.update(saved)


def has_run_out(patience: int) -> bool:
    """Whether training has already stopped because of ``--patience``."""
    return 0 < patience <= counts().get("num_runs", 0)
