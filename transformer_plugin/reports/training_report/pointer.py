"""The values that the page shows under the pointer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .series import Series

_MOST_POINTS = 1000  # points of a line: more than a chart has pixels


def pointer_values(
    label: str, colour: str, series: Series, table: Mapping[str, Series], also: str
) -> dict[str, Any]:
    """A line for the page's script, as JSON.

    Args:
        table: the log's numbers of the same updates.
        also: the name of a number to show with each value; may be empty.

    Returns:
        ``label``, ``colour`` and ``points``: update, value, epoch and the other number. Values have
        five digits; unknown, NaN and infinite ones are None.
    """
    known = {
        name: dict(zip(table[name].updates, table[name].values, strict=True))
        for name in ("epoch", also)
        if name in table
    }
    step = math.ceil(len(series.updates) / _MOST_POINTS)
    chosen = sorted({*range(0, len(series.updates), step), len(series.updates) - 1})
    points = []
    for i in chosen:
        update = series.updates[i]
        others = [known.get(name, {}).get(update) for name in ("epoch", also)]
        points.append([update, *map(_rounded, (series.values[i], *others))])
    return {"label": label, "colour": colour, "points": points}


def _rounded(value: float | None) -> float | None:  # as far as the page shows: not twice
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")
