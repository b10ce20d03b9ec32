"""Sentences for small archives: real ones where they are at hand, else the toy grammar's."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from toy.corpus import sentence_pairs

REAL = Path(__file__).resolve().parents[3] / "shared" / "data"
WMT_COUNTS = {
    "europarl": 200,
    "commoncrawl": 150,
    "news": 100,
    "un": 80,
    "giga": 60,
    "valid": 40,
    "test": 50,
}
IWSLT_COUNTS = {"train": 500, "test": 60}


def _real_text(prefix: str) -> Iterator[tuple[str, str]] | None:
    """Pairs of a text of the shared data, from its first line on; None where it is absent."""
    sides = []
    for language in ("en", prefix.split("/")[0][-2:].replace("en", "de")):
        path = REAL / f"{prefix}.{language}.gz"
        if not path.is_file():
            return None
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            sides.append([line.rstrip("\n") for _, line in zip(range(1200), file, strict=False)])
    return iter(list(zip(*sides, strict=True)))


def texts(prefix: str, counts: dict[str, int]) -> dict[str, tuple[list[str], list[str]]]:
    """{key: (English, other)} with as many pairs as `counts` says, none of them twice."""
    pairs = _real_text(prefix) or sentence_pairs(seed=3)
    found = {}
    for key, count in counts.items():
        english, other = zip(*(next(pairs) for _ in range(count)), strict=True)
        found[key] = list(english), list(other)
    return found
