"""The entries of a training log of fairseq: when, from whom, what."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

_BEFORE_STAMP = re.compile(r"(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| [A-Z]+ \| )")
_PROGRESS = re.compile(r"epoch (?P<epoch>\d+): +\d+ / (?P<batches>\d+) (?P<numbers>\S.*)")
_SUMMARY = re.compile(r"epoch (?P<epoch>\d+) \| (valid on '.*?' subset \| )?(?P<numbers>\S.*)")


class Entry(NamedTuple):
    """``source`` is a logger's name, and for numbers ``train_inner``, ``train`` or the name of a
    validation set; ``whole`` is false where a crash, or a writer at work, has cut it off."""

    time: datetime
    level: str
    source: str
    text: str
    whole: bool


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a log file, which may be torn or still being written."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            yield from entries_of(line)


def entries_of(line: str) -> Iterator[Entry]:
    """One entry, or none, or a torn one and those written behind it."""
    parts = _BEFORE_STAMP.split(line)
    for i, part in enumerate(parts[1:], start=2):
        stamp, level, *rest = part.split(" | ", 3)
        try:
            time = datetime.fromisoformat(stamp)
        except ValueError:  # the 39th of a month
            continue
        source, text = [*rest, "", ""][:2]
        whole = i == len(parts) and line.endswith("\n") and len(rest) == 2
        yield Entry(time, level, source, text.rstrip("\r\n"), whole)


def numbers(entry: Entry) -> dict[str, float] | None:
    """The numbers of an entry of progress, in fairseq's ``simple`` or ``json`` format, ``epoch``
    among them; None where it is something else.

    Raises:
        ValueError: it is progress, but torn.
    """
    text = entry.text
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
        raise ValueError("something that is no number") from None
    if not entry.whole or not values.get("num_updates", math.nan).is_integer():
        raise ValueError("the numbers are cut off")
    return values
