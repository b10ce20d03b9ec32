"""``transformer-plugin progress``: what training writes, with a bar for its lines of progress.

A file gets fairseq's plain lines (``--log-format simple``), and a terminal the time left as well:

    fairseq-train ... --log-format simple 2>&1 | tee train.log | transformer-plugin progress
    tail -n +1 -f train.log | transformer-plugin progress
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from .entries import entries_of
from .series import TrainingLog

_BAR = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} updates{postfix}"


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """``transformer-plugin progress`` takes none."""


def main(_args: argparse.Namespace) -> None:
    """Copies standard input to standard output, which is a terminal or not."""
    # Ctrl-C stops training, and this when training has said its last.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    show(sys.stdin, sys.stdout, sys.stdout.isatty())


def show(lines: Iterable[str], output: TextIO, terminal: bool) -> None:
    """Writes each line, those of progress on a terminal as a bar, elsewhere with the time left."""
    log = TrainingLog(Path("standard input"))
    bar = None
    for line in lines:
        of_progress = False
        for entry in entries_of(line):
            log.take(entry)
            of_progress = entry.whole and entry.source == "train_inner"
        if terminal and of_progress:
            bar = bar or tqdm(file=output, bar_format=_BAR, leave=False, dynamic_ncols=True)
            _draw(bar, log)
        elif terminal:
            tqdm.write(line, output, end="")
        else:
            left = f"  [{time_left(log)}]" if of_progress else ""
            print(line.rstrip("\n"), left, sep="", file=output, flush=True)
    if bar is not None:
        bar.close()


def _draw(bar: tqdm, log: TrainingLog) -> None:
    bar.total, bar.n = log.total_updates, log.updates
    latest = {name: series.values[-1] for name, series in log.train.items() if series.values}
    shown = [time_left(log)]
    shown += [f"{name} {latest[name]:g}" for name in ("loss", "lr") if name in latest]
    shown += [f"{latest['wps']:,.0f} tokens/s"] if "wps" in latest else []
    bar.set_postfix_str(", ".join(shown))


def time_left(log: TrainingLog) -> str:
    """``1:02:03 left``, or that it is not known."""
    seconds = log.seconds_left()
    return "time left not known" if seconds is None else f"{timedelta(seconds=round(seconds))} left"
