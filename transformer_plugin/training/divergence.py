"""Detects divergence: a loss that has risen and does not fall again."""

from __future__ import annotations

import math
from typing import Any

WINDOW = 100  # time constant of the running mean, in updates
RISE = 1.25  # limit, as a multiple of the lowest running mean
NOISE = 0.1  # rise that never counts, in bits per token: a loss near 0 may multiply


class DivergenceDetector:
    """Compares the running mean of the loss with its lowest value.

    Args:
        patience: consecutive updates above the limit that count as divergence; 0: never.

    Attributes:
        last_good_update: the last update with a running mean below the limit.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.last_good_update = 0
        self._mean = self._weight = 0.0
        self._lowest = math.inf

    def has_diverged(self, update: int, loss: float) -> bool:
        """Adds the loss of one update and returns whether training has diverged."""
        keep = 1 - 1 / WINDOW
        self._mean = keep * self._mean + (1 - keep) * loss
        self._weight = keep * self._weight + 1 - keep
        mean = self._mean / self._weight
        self._lowest = min(self._lowest, mean)
        if mean - self._lowest <= max((RISE - 1) * abs(self._lowest), NOISE):
            self.last_good_update = update
        return 0 < self.patience <= update - self.last_good_update

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {name: value for name, value in vars(self).items() if name != "patience"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned."""
        vars(self).update(state)
