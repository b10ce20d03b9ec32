"""Reads the entries of fairseq's training log."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

_BEFORE_STAMP = re.compile(r"(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| [A-Z]+ \| )")
_PROGRESS = re.compile(r"epoch (?P<epoch>\d+): +\d+ / (?P<batches>\d+) (?P<numbers>\S.*)")
_SUMMARY = re.compile(r"epoch (?P<epoch>\d+) \| (valid on '.*?' subset \| )?(?P<numbers>\S.*)")


class Entry(NamedTuple):
    """An entry of the log.

    Attributes:
        source: name of the logger; for numbers ``train_inner``, ``train`` or a validation set.
        whole: False if a crash truncated the entry, or it is still being written.
    """

    time: datetime
    level: str
    source: str
    text: str
    whole: bool


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a log file, which may be truncated or still being written."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            yield from entries_of(line)


def entries_of(line: str) -> Iterator[Entry]:
    """The entries in a line: one or none; more if others follow a truncated entry."""
    parts = _BEFORE_STAMP.split(line)
    for i, part in enumerate(parts[1:], start=2):
        stamp, level, *rest = part.split(" | ", 3)
        try:
            time = datetime.fromisoformat(stamp)
        except ValueError:  # no such date
            continue
        source, text = [*rest, "", ""][:2]
        whole = i == len(parts) and line.endswith("\n") and len(rest) == 2
        yield Entry(time, level, source, text.rstrip("\r\n"), whole)


def numbers(entry: Entry) -> dict[str, float] | None:
    """The numbers of a progress entry in fairseq's ``simple`` or ``json`` format, with ``epoch``.

    Returns:
        None if it is another kind of entry.

    Raises:
        ValueError: it is a truncated progress entry.
    """
    text = entry.text
    pairs: list[Sequence[Any]]
    if text.startswith('{"epoch":'):
        found = json.loads(text)
        prefix = f"{entry.source}_"  # json puts it before the names of a summary
        pairs = [(name.removeprefix(prefix), value) for name, value in found.items()]
    elif match := _PROGRESS.fullmatch(text):
        pairs = [item.split("=") for item in match["numbers"].split(", ")]
        pairs += [("epoch", match["epoch"]), ("batches", match["batches"])]
    elif match := _SUMMARY.fullmatch(text):
        pairs = [item.rsplit(" ", 1) for item in match["numbers"].split(" | ")]
        pairs.append(("epoch", match["epoch"]))
    elif entry.source == "train_inner":
        raise ValueError("the progress is cut off")
    else:
        return None
    try:
        values = {name: float(value) for name, value in pairs if value is not None}
    except TypeError:
        raise ValueError("a value is not a number") from None
    if not entry.whole or not values.get("num_updates", math.nan).is_integer():
        raise ValueError("the numbers are cut off")
    return values
