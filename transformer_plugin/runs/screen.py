"""What the screen shows of a command whose output goes to a log.

Brief: the model, a bar, one line an epoch, the plugin's warnings, and fairseq's about sentences
that it leaves out. With VERBOSE=1: everything.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TextIO

from tqdm import tqdm

from ..reports.training_report.entries import Entry, entries_of
from ..reports.training_report.progress import ProgressBar
from ..reports.training_report.series import PARAMETERS, TrainingLog
from ..text_streams import discard

_MODEL = re.compile(r"model: (.*)")
_RESUMED = re.compile(r"Loaded checkpoint (\S+) \(epoch (\d+) @ (\d+) updates\)")
_SPENT = re.compile(r"done training in ([\d.]+) seconds")
_TRANSLATED = re.compile(r"Translated ([\d,]+) sentences \(.*\) in ([\d.]+)s")
_LEFT_OUT = "samples have invalid sizes and will be skipped"
# fairseq-generate's messages, which have no date.
_UNDATED = re.compile(r"(?P<level>[A-Z]+):(?P<source>[\w.]+):(?P<text>.*)")


class Screen(Protocol):
    """Takes what a command writes, in pieces of any size."""

    def write(self, text: bytes) -> None: ...

    def close(self) -> None: ...


def screen(stream: TextIO) -> Screen:
    """The screen that the user has asked for."""
    if os.environ.get("VERBOSE", "0") not in ("", "0"):
        return WholeScreen(stream)
    return BriefScreen(stream)


class WholeScreen:
    """Shows everything as it is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: bytes) -> None:
        try:
            self._stream.buffer.write(text)
            self._stream.flush()
        except OSError:
            discard(self._stream)

    def close(self) -> None:
        pass


class BriefScreen:
    """Shows the progress of training, on a terminal with a bar, and the plugin's warnings."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._log = TrainingLog()
        self._bar = ProgressBar(stream, self._log) if stream.isatty() else None
        self._line = b""  # not complete yet
        self._is_described = False
        self._left_out: set[str] = set()  # messages that were shown; each process writes them

    def write(self, text: bytes) -> None:
        *lines, self._line = (self._line + text).split(b"\n")
        for line in lines:
            self._take(line.decode(errors="replace"))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _take(self, line: str) -> None:
        if match := _UNDATED.fullmatch(line):
            self._take_message(match["level"], match["source"], match["text"])
        for entry in entries_of(line + "\n"):
            self._log.take(entry)
            self._take_entry(entry)

    def _take_entry(self, entry: Entry) -> None:
        if entry.source == "train":
            if entry.whole:
                self._print(self._epoch())
        elif entry.source == "train_inner" or entry.text == "Start iterating over samples":
            if self._bar is not None:
                self._bar.draw()
        else:
            self._take_message(entry.level, entry.source, entry.text)

    def _take_message(self, level: str, source: str, text: str) -> None:
        own = source.startswith("transformer_plugin")
        if own and level in ("WARNING", "ERROR"):
            self._print(text)
        if own and (match := _MODEL.match(text)):
            self._print(match[1])
            self._is_described = True
        elif (match := PARAMETERS.match(text)) and not self._is_described:  # another system's model
            self._print(f"{match[1]} parameters")
        elif match := _RESUMED.match(text):
            name, update = Path(match[1]).name, int(match[3])
            fine_tunes = f"starts from the model of {name}"
            self._print(f"continues from {name}, update {update:,}" if update else fine_tunes)
        elif match := _SPENT.match(text):
            self._print(f"trained in {timedelta(seconds=round(float(match[1])))}")
        elif _LEFT_OUT in text and text not in self._left_out:
            self._left_out.add(text)
            self._print(text)
        elif text.startswith("early stop since"):
            self._print(text)
        elif match := _TRANSLATED.match(text):
            self._print(f"{match[1]} sentences translated in {match[2]} s")

    def _epoch(self) -> str:
        """The line of an epoch that has just ended."""
        log = self._log
        trained = {name: series.values[-1] for name, series in log.epochs.items()}
        update = log.epochs["epoch"].updates[-1]
        shown = [f"train ppl {trained['ppl']:.2f}"] if "ppl" in trained else []
        metric = self._setting("checkpoint", "best_checkpoint_metric") or "loss"
        for name, table in log.valid.items():
            latest = {k: s.values[-1] for k, s in table.items() if s.updates[-1:] == [update]}
            if "ppl" in latest:
                names = {"bleu": "BLEU", "chrf": "chrF"}
                scores = "".join(f", {names[k]} {latest[k]:.2f}" for k in names if k in latest)
                score = latest.get(metric)
                # The first validation has no best score yet.
                is_best = score is not None and score == latest.get(f"best_{metric}", score)
                mark = f" (best {metric})" if is_best else ""
                shown.append(f"{name} ppl {latest['ppl']:.2f}{scores}{mark}")
        if "wps" in trained:
            shown.append(f"{trained['wps']:,.0f} tokens/s")
        limit = self._setting("optimization", "max_epoch")
        total = f"/{limit}" if limit else ""
        return f"epoch {trained['epoch']:.0f}{total}: {', '.join(shown)}"

    def _setting(self, part: str, name: str) -> Any:
        return ((self._log.settings or {}).get(part) or {}).get(name)

    def _print(self, text: str) -> None:
        try:
            tqdm.write(f"  {text}", self._stream)
            self._stream.flush()
        except OSError:
            discard(self._stream)
