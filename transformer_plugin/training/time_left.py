"""Estimates how long training will still take, for its log."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any


class TimeLeft:
    """The hours to the last update, from the mean speed since this process's first update. The mean
    includes validation and saving.

    Args:
        max_update: updates of the whole run; 0: no limit.
        max_epoch: epochs of the whole run; 0: no limit.
        clock: returns seconds.
        update_freq: batches in an update of each epoch; the last number holds for all later ones.
        max_hours: hours of training of the whole run; 0: no limit.

    Attributes:
        batches_per_epoch: of one process; to be set before ``hours`` is called.
    """

    def __init__(
        self,
        max_update: int,
        max_epoch: int,
        clock: Callable[[], float] = time.monotonic,
        update_freq: Sequence[int] = (1,),
        max_hours: float = 0,
    ) -> None:
        self._limits, self._max_hours = (max_update, max_epoch), max_hours
        self._clock, self._update_freq = clock, update_freq
        self._first: tuple[int, float] | None = None
        self.batches_per_epoch = 0

    @classmethod
    def within(cls, limits: Any) -> TimeLeft:
        """The time left within the limits of fairseq's section ``optimization``."""
        return cls(
            limits.max_update or 0,
            limits.max_epoch or 0,
            update_freq=limits.update_freq,
            max_hours=limits.stop_time_hours or 0,
        )

    def hours(self, update: int, trained: float = 0.0) -> float | None:
        """The estimate after ``update``; None after the first update, and without any limit.

        Args:
            trained: seconds of training so far, with those of earlier processes.
        """
        max_update, max_epoch = self._limits
        in_epochs = [-(-self.batches_per_epoch // frequency) for frequency in self._update_freq]
        later = max(0, max_epoch - len(in_epochs)) * in_epochs[-1]
        limits = [limit for limit in (max_update, sum(in_epochs[:max_epoch]) + later) if limit > 0]
        if self._first is None:
            self._first = update, self._clock()
        first, since = self._first
        if update <= first:
            return None
        hours_per_update = (self._clock() - since) / (update - first) / 3600
        left = [(limit - update) * hours_per_update for limit in limits]
        left += [self._max_hours - trained / 3600] if self._max_hours > 0 else []
        return max(0.0, min(left)) if left else None
