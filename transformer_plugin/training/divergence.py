"""When the loss has risen for good."""

from __future__ import annotations

import math

WINDOW = 100  # updates that the running mean looks back
RISE = 1.25  # times the lowest running mean


class LossWatch:
    """Follows the running mean of the loss of each update.

    Args:
        patience: updates in a row with a mean above ``RISE`` times the lowest one that count as
            risen for good; 0 = never.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.last_sound_update = 0  # the last with a mean below the limit
        self._mean = self._weight = 0.0
        self._lowest = math.inf

    def has_risen(self, update: int, loss: float) -> bool:
        """Takes the loss of one update; whether it has risen for good."""
        keep = 1 - 1 / WINDOW
        self._mean = keep * self._mean + (1 - keep) * loss
        self._weight = keep * self._weight + 1 - keep
        mean = self._mean / self._weight
        self._lowest = min(self._lowest, mean)
        if mean <= RISE * self._lowest:
            self.last_sound_update = update
        return 0 < self.patience <= update - self.last_sound_update
