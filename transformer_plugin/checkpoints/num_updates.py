"""The number of updates that a checkpoint has been trained for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def num_updates(state: Mapping[str, Any]) -> int | None:
    """Updates made before the checkpoint was saved; None if it does not say."""
    history = state.get("optimizer_history") or [{}]
    return history[-1].get("num_updates")
