"""Estimates how long training will still take, for its log."""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeLeft:
    """The hours to the last update, from the mean speed since this process's first update. The mean
    includes validation and saving.

    Args:
        max_update: updates of the whole run; 0: no limit.
        max_epoch: epochs of the whole run; 0: no limit.
        clock: returns seconds.

    Attributes:
        updates_per_epoch: to be set before ``hours`` is called.
    """

    def __init__(
        self, max_update: int, max_epoch: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = max_update, max_epoch
        self._clock = clock
        self._first: tuple[int, float] | None = None
        self.updates_per_epoch = 0

    def hours(self, update: int) -> float | None:
        """The estimate after ``update``; None after the first update, and without any limit."""
        max_update, max_epoch = self._limits
        limits = [limit for limit in (max_update, max_epoch * self.updates_per_epoch) if limit > 0]
        if self._first is None:
            self._first = update, self._clock()
        first, since = self._first
        if update <= first or not limits:
            return None
        seconds_per_update = (self._clock() - since) / (update - first)
        return max(0, min(limits) - update) * seconds_per_update / 3600
