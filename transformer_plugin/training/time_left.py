"""How long training still takes, for its log."""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeLeft:
    """Hours to the last update, at the mean speed since this process made its first one,
    validation and saving included.

    Args:
        max_update: updates of the whole run; 0: no such limit.
        max_epoch: epochs of it; 0: no such limit.
        clock: seconds.
    """

    def __init__(
        self, max_update: int, max_epoch: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = max_update, max_epoch
        self._clock = clock
        self._first: tuple[int, float] | None = None
        self.updates_an_epoch = 0

    def hours(self, update: int) -> float | None:
        """After ``update``; None after the first, and where no limit says when training ends."""
        max_update, max_epoch = self._limits
        limits = [limit for limit in (max_update, max_epoch * self.updates_an_epoch) if limit > 0]
        if self._first is None:
            self._first = update, self._clock()
        first, since = self._first
        if update <= first or not limits:
            return None
        an_update = (self._clock() - since) / (update - first)
        return max(0, min(limits) - update) * an_update / 3600
