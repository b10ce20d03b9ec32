"""How far a long step is, and how long it still takes: a line on stderr every few seconds."""

from __future__ import annotations

import sys
import time

INTERVAL = 5.0  # seconds


class Progress:
    """Counts what is done of `total` (None: not known); `already` was done by an earlier run."""

    def __init__(self, what: str, total: int | None, unit: str, already: int = 0) -> None:
        self.what, self.total, self.unit, self.already = what, total, unit, already
        self.done = already
        self.start = time.monotonic()
        self.next_report = self.start + INTERVAL

    def add(self, count: int) -> None:
        """`count` more are done."""
        self.done += count
        if time.monotonic() >= self.next_report:
            print(self.line(), file=sys.stderr, flush=True)
            self.next_report += INTERVAL

    def line(self) -> str:
        """As "[clean] train: 120,000 of 1,000,000 pairs, 30,000 a second, 0:29 left"."""
        rate = (self.done - self.already) / max(time.monotonic() - self.start, 1e-9)
        if self.total is None or not rate:
            return f"{self.what}: {self.done:,} {self.unit}, {rate:,.0f} a second"
        left = round(max(self.total - self.done, 0) / rate)
        hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        return (f"{self.what}: {self.done:,} of {self.total:,} {self.unit}, "
                f"{rate:,.0f} a second, {clock} left")
