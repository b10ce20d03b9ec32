"""Reads a training log as series of numbers over updates."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from .attempts import RESUMED, Attempts
from .entries import Entry, numbers, read_entries
from .phases import Phases
from .settings import Settings, parse_settings

_SAVED = re.compile(
    r"Saved checkpoint (?P<path>.+) \(epoch (?P<epoch>\d+) @ (?P<updates>\d+) updates,"
    r" score (?P<score>\S+)\)"
)
_BATCHES = re.compile(r"grouped total_num_itrs = (\d+)")
PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
_ENDS = ("done training in", "Stopping training due to", "early stop since")


@dataclass
class Series:
    """Values at increasing updates."""

    updates: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, update: int, value: float) -> None:
        """Adds a point, in place of any from ``update`` on."""
        self.cut(update)
        self.updates.append(update)
        self.values.append(value)

    def cut(self, update: int) -> None:
        """Removes the points from ``update`` on, which the run is to make again."""
        while self.updates and self.updates[-1] >= update:
            self.updates.pop()
            self.values.pop()


def _table() -> defaultdict[str, Series]:
    return defaultdict(Series)


@dataclass
class Saved:
    """A checkpoint in the log; ``score`` is its validation score, or None."""

    name: str
    epoch: int
    updates: int
    score: float | None


@dataclass
class TrainingLog:
    """A log as far as it has been written.

    Attributes:
        train: by name (loss, lr, wps, ...): means of the updates since the previous point.
        epochs: the same, one point for each epoch.
        valid: the same for each validation set.
        settings: those of the last start; None if the log does not have all of them.
        batches: length of an epoch in updates.
        warnings: warnings of the plugin: faulty batches, divergence, broken checkpoints.
        unreadable_lines: number of unreadable lines.
    """

    train: defaultdict[str, Series] = field(default_factory=_table)
    epochs: defaultdict[str, Series] = field(default_factory=_table)
    valid: dict[str, defaultdict[str, Series]] = field(default_factory=dict)
    phases: Phases = field(default_factory=Phases)
    attempts: Attempts = field(default_factory=Attempts)
    settings: Settings | None = None
    saved: list[Saved] = field(default_factory=list)
    warnings: list[Entry] = field(default_factory=list)
    parameters: int | None = None
    batches: int | None = None
    starts: int = 0
    unreadable_lines: int = 0
    ended: bool = False
    last: datetime | None = None

    @property
    def updates(self) -> int:
        """The number of finished updates in the log, which with ``--log-format none`` has only
        those of its checkpoints."""
        tables = [self.train, self.epochs, *self.valid.values()]
        ends = [s.updates[-1] for table in tables for s in table.values() if s.updates]
        return max([*ends, *(saved.updates for saved in self.saved)], default=0)

    @property
    def points(self) -> defaultdict[str, Series]:
        """``train``; or ``epochs``, if the log has no other points of training."""
        return self.train if self.train["loss"].updates else self.epochs

    @property
    def total_updates(self) -> int | None:
        """The number of updates of the whole run; None if the settings do not limit it."""
        limits = (self.settings or {}).get("optimization", {})
        totals = [
            limits.get("max_update") or 0,
            (limits.get("max_epoch") or 0) * (self.batches or 0),
        ]
        return min((total for total in totals if total), default=None)

    def tokens_per_second(self) -> float | None:
        """Target tokens per second of training: all tokens divided by their total time."""
        return self.mean_rate("wps")

    def mean_rate(self, name: str) -> float | None:
        """The mean of a rate, such as ``tflops``, over the time of training.

        An update of each point took ``wpb / wps`` seconds; a mean or median of the points would
        hide slow periods.
        """
        rate, wps, wpb = (
            dict(zip(self.points[key].updates, self.points[key].values, strict=True))
            for key in (name, "wps", "wpb")
        )
        seconds = {
            update: wpb[update] / wps[update]
            for update in rate.keys() & wps.keys() & wpb.keys()
            if 0 < wps[update] < math.inf
        }
        total = sum(seconds.values())
        return sum(rate[update] * seconds[update] for update in seconds) / total if total else None

    def seconds_left(self) -> float | None:
        """An estimate from the speed of the last points, with the same share of validation and
        saving as before, and at most what the log says with ``--stop-time-hours``; None if the run
        has ended, or its length or speed is not known."""
        if self.ended:
            return None
        left = []
        speeds = [ups for ups in self.train["ups"].values[-10:] if ups > 0]
        if self.total_updates is not None and speeds:
            update = sum(1 / ups for ups in speeds) / len(speeds) * self.phases.overhead
            left.append(max(0, self.total_updates - self.updates) * update)
        if (self.settings or {}).get("optimization", {}).get("stop_time_hours"):
            left += [3600 * hours for hours in self.train["hours_left"].values[-1:]]
        return min(left, default=None)

    def take(self, entry: Entry) -> None:
        """Processes the next entry."""
        self.last = entry.time
        self.phases.take(entry)
        if entry.level in ("WARNING", "ERROR") and entry.source.startswith("transformer_plugin"):
            self.warnings.append(entry)
        try:
            self._take_contents(entry)
        except ValueError:
            self.unreadable_lines += 1

    def _take_contents(self, entry: Entry) -> None:
        found, saved = numbers(entry), _SAVED.match(entry.text)
        update = found["num_updates"] if found else saved["updates"] if saved else None
        self.attempts.take(entry, None if update is None else int(update))
        if found is not None:
            self._take_numbers(entry.source, found)
        elif entry.source == "fairseq_cli.train" and entry.text.startswith("{'_name'"):
            self.starts, self.ended = self.starts + 1, False
            self.settings = parse_settings(entry.text)
        elif entry.text.startswith(_ENDS):
            self.ended = True
        elif match := RESUMED.match(entry.text):
            finished = int(match[1] or 0)
            self.saved = [saved for saved in self.saved if saved.updates <= finished]
            for table in (self.train, self.epochs, *self.valid.values()):
                for series in table.values():
                    series.cut(finished + 1)
        elif saved:
            score = None if saved["score"] == "None" else float(saved["score"])
            name = Path(saved["path"]).name
            self.saved.append(Saved(name, int(saved["epoch"]), int(saved["updates"]), score))
        elif match := _BATCHES.match(entry.text):
            self.batches = int(match[1])
        elif match := PARAMETERS.match(entry.text):
            self.parameters = int(match[1].replace(",", ""))

    def _take_numbers(self, source: str, found: dict[str, float]) -> None:
        update = int(found.pop("num_updates"))
        if source == "train_inner":
            table, self.ended = self.train, False
        elif source == "train":
            table = self.epochs
        else:
            table = self.valid.setdefault(source, _table())
        for name, value in found.items():
            table[name].add(update, value)


def read_log(path: Path) -> TrainingLog:
    """Reads a log as far as it has been written.

    Raises:
        OSError: the file cannot be read.
        ValueError: it contains nothing from fairseq-train.
    """
    log = TrainingLog()
    for entry in read_entries(path):
        log.take(entry)
    if not (log.starts or log.updates):
        raise ValueError(
            f"{path}: no settings or progress of fairseq-train in it; expected lines such as"
            " '2026-01-31 12:00:00 | INFO | train_inner | epoch 001: ...'"
            " (--log-format simple or json)"
        )
    return log


def best(series: Series, largest: bool) -> tuple[int, float] | None:
    """The update and value of the best point, ignoring NaN and infinite values."""
    points = zip(series.updates, series.values, strict=True)
    pairs = [(update, value) for update, value in points if math.isfinite(value)]
    choose = max if largest else min
    return choose(pairs, key=lambda pair: pair[1]) if pairs else None
