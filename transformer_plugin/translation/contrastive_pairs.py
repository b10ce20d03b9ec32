"""Reads contrastive pairs: a sentence, its right translation, and one with a single mistake.

There are two formats. A table has a header line and then one pair a line, with tabs between the
columns; ``distance`` may be left out or empty:

    source  right  wrong  category  distance

JSON is the format of LingEval97 (Sennrich, 2017): a list of objects with ``source``, ``reference``
and ``errors``. Each error has ``type``, ``contrastive`` and optionally ``distance``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..text_lines import SURROGATE

COLUMNS = ("source", "right", "wrong", "category", "distance")


@dataclass(frozen=True)
class Pair:
    """Two translations of one sentence.

    Attributes:
        category: the kind of mistake.
        distance: in words, between the words that must agree; 1 for neighbours.
        place: file and line, for messages.
    """

    source: str
    right: str
    wrong: str
    category: str
    distance: int | None
    place: str


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file.

    Raises:
        OSError: there is no such file.
        ValueError: there are no pairs, or one has a wrong form; names its place.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not valid UTF-8 at byte {error.start + 1}") from None
    pairs = list(_of_json(path, text) if text.lstrip().startswith("[") else _of_table(path, text))
    if not pairs:
        raise ValueError(f"{path}: no pairs; expected a table of {', '.join(COLUMNS)}, or JSON")
    for pair in pairs:
        _check(pair)
    return pairs


def _of_table(path: Path, text: str) -> Iterator[Pair]:
    header, *lines = text.removesuffix("\n").split("\n")
    names = header.removesuffix("\r").split("\t")
    if sorted(names) not in (sorted(COLUMNS), sorted(COLUMNS[:-1])):
        raise ValueError(
            f"{path}:1: expected the column names {', '.join(COLUMNS)} with tabs between them,"
            f" got '{header[:60]}'"
        )
    for number, line in enumerate(lines, start=2):
        cells = line.removesuffix("\r").split("\t")
        place = f"{path}:{number}"
        if len(cells) != len(names):
            raise ValueError(f"{place}: expected {len(names)} cells with tabs, got {len(cells)}")
        yield _pair(dict(zip(names, cells, strict=True)), place)


def _of_json(path: Path, text: str) -> Iterator[Pair]:
    try:
        sentences = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError):
        raise ValueError(
            f"{path}: not JSON that can be read: nested too deeply, or a number of too many digits"
        ) from None
    try:
        for number, sentence in enumerate(sentences, start=1):
            for mistake in sentence["errors"]:
                distance = mistake.get("distance")
                cells = {
                    "source": sentence["source"],
                    "right": sentence["reference"],
                    "wrong": mistake["contrastive"],
                    "category": mistake["type"],
                    "distance": "" if distance is None else str(distance),
                }
                yield _pair(cells, f"{path}, sentence {number}")
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}, sentence {number}: expected source, reference, and errors with type and"
            f" contrastive ({type(error).__name__}: {error})"
        ) from None


def _pair(cells: dict[str, Any], place: str) -> Pair:
    distance = cells.pop("distance", "")
    if distance and not (distance.isdecimal() and len(distance) < 10):
        raise ValueError(
            f"{place}: distance is '{distance[:60]}': expected a whole number of at most 9 digits,"
            " or nothing"
        )
    return Pair(**cells, distance=int(distance) if distance else None, place=place)


def _check(pair: Pair) -> None:
    for name in ("source", "right", "wrong", "category"):
        value = getattr(pair, name)
        if not isinstance(value, str):
            raise ValueError(f"{pair.place}: '{name}' is {value!r}: expected text")
        if SURROGATE.search(value):
            raise ValueError(f"{pair.place}: '{name}' holds half of a surrogate pair: {value!r}")
        if not value.strip():
            raise ValueError(f"{pair.place}: '{name}' is empty")
    if pair.category == "all":
        raise ValueError(f"{pair.place}: category 'all' names the total: rename it")
    if pair.right.split() == pair.wrong.split():
        raise ValueError(f"{pair.place}: the right and the wrong translation are the same")
