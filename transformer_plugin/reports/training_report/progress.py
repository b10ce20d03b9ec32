"""``transformer-plugin progress``: shows the output of training, with a progress bar.

A file gets fairseq's plain lines (``--log-format simple``), and a terminal also the time left:

    fairseq-train ... --log-format simple 2>&1 | tee -i train.log | transformer-plugin progress
    tail -n +1 -f train.log | transformer-plugin progress
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable
from datetime import timedelta
from typing import TextIO

from tqdm import tqdm

from ...text_streams import check_output
from .entries import entries_of
from .series import TrainingLog

_BAR = "{desc}update {n_fmt}/{total_fmt}{postfix} |{bar}|"


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """``transformer-plugin progress`` takes none."""


def main(_args: argparse.Namespace) -> None:
    """Copies standard input to standard output, a terminal or a file.

    Raises:
        ValueError: standard input is closed or a terminal, or standard output is closed.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError(
            "expected the output of training: fairseq-train ... 2>&1 | transformer-plugin progress"
        )
    check_output()
    # Ctrl-C stops training; this command ends after training's last line.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    show(sys.stdin, sys.stdout, sys.stdout.isatty())


def show(lines: Iterable[str], output: TextIO, terminal: bool) -> None:
    """Writes each line; progress is a bar on a terminal, elsewhere a line with the time left."""
    log = TrainingLog()
    bar = ProgressBar(output, log) if terminal else None
    for line in lines:
        is_progress = False
        for entry in entries_of(line):
            log.take(entry)
            is_progress = entry.whole and entry.source == "train_inner"
        if bar is None:
            left = f"  [{time_left(log)}]" if is_progress else ""
            print(line.rstrip("\n"), left, sep="", file=output, flush=True)
        elif is_progress:
            bar.draw()
        else:
            tqdm.write(line, output, end="")
    if bar is not None:
        bar.close()


class ProgressBar:
    """A bar on a terminal for the updates of a log, which fits in 80 columns."""

    def __init__(self, output: TextIO, log: TrainingLog) -> None:
        self._output, self._log = output, log
        self._bar: tqdm | None = None

    def draw(self) -> None:
        """Shows the state of the log."""
        log = self._log
        if self._bar is None:
            self._bar = tqdm(file=self._output, bar_format=_BAR, leave=False, dynamic_ncols=True)
        done = max([log.updates, *(attempt.last for attempt in log.attempts.found[-1:])])
        self._bar.total, self._bar.n = log.total_updates, done
        latest = {name: series.values[-1] for name, series in log.train.items() if series.values}
        self._bar.desc = f"epoch {latest['epoch']:.0f}, " if "epoch" in latest else ""
        shown = [time_left(log)]
        shown += [f"loss {latest['loss']:.2f}"] if "loss" in latest else []
        shown += [f"{latest['wps']:,.0f} tokens/s"] if "wps" in latest else []
        self._bar.set_postfix_str(", ".join(shown))

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()


def time_left(log: TrainingLog) -> str:
    """``1:02:03 left``, or a text if the time is not known."""
    seconds = log.seconds_left()
    return "time left not known" if seconds is None else f"{timedelta(seconds=round(seconds))} left"
