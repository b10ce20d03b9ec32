"""The attempts of a run: each of its starts, with the first update and the batch size."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .entries import Entry

# The updates from which training goes on; without a checkpoint it begins anew.
RESUMED = re.compile(
    r"Loaded checkpoint .*\(epoch \d+ @ (\d+) updates\)|No existing checkpoint found"
)
_SIZE = re.compile(
    r"an update holds ([\d,]+) source and ([\d,]+) target tokens on average .* and takes (\S+)"
    r" FLOPs; ([\d,]+) updates an epoch"
)
_DEVICES = re.compile(r"training on (\d+) devices")
_DEVIATIONS = re.compile(r"not as in the paper: (.*)")


@dataclass
class Attempt:
    """One start of training; tokens and FLOPs are those of a mean update.

    Attributes:
        first, last: number of the last update before the start, and of the last one in the log;
            updates count from the run's first start.
    """

    first: int
    last: int
    source_tokens: int
    target_tokens: int
    flops: float
    updates_per_epoch: int


@dataclass
class Attempts:
    """The attempts in a log.

    Attributes:
        devices, deviations: number of devices, and deviations from the paper, of the last start;
            None if the log does not have them.
    """

    found: list[Attempt] = field(default_factory=list)
    devices: int | None = None
    deviations: list[str] | None = None
    _resumed_from: int = 0

    @property
    def flops(self) -> float:
        """FLOPs of all updates, including those lost by interruptions."""
        return sum((attempt.last - attempt.first) * attempt.flops for attempt in self.found)

    def take(self, entry: Entry, update: int | None) -> None:
        """Processes the next entry; ``update`` is that of its numbers or checkpoint."""
        if update is not None:
            if self.found:
                self.found[-1].last = max(self.found[-1].last, update)
        elif match := RESUMED.match(entry.text):
            self._resumed_from = int(match[1] or 0)
        elif match := _SIZE.match(entry.text):
            source, target, flops, an_epoch = match.groups()
            first, self._resumed_from = self._resumed_from, 0
            self.found.append(
                Attempt(first, first, _int(source), _int(target), float(flops), _int(an_epoch))
            )
        elif match := _DEVICES.match(entry.text):
            self.devices = int(match[1])
        elif match := _DEVIATIONS.match(entry.text):
            self.deviations = [] if match[1] == "nothing" else match[1].split("; ")


def _int(text: str) -> int:
    return int(text.replace(",", ""))
