"""Shows the progress of a long step: a bar on a terminal, occasional lines in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm


def progress(
    description: str,
    total: int | None,
    unit: str,
    items: Iterable[Any] | None = None,
    done: int = 0,
) -> tqdm:
    """A bar that `update(count)` moves, or iteration over `items`. Steps of less than two seconds
    show nothing.

    Args:
        total: None if not known.
        done: number done by an earlier run.
    """
    from tqdm import tqdm  # slow, and not needed for a step that is done

    tqdm.monitor_interval = 0  # no thread: worker processes are forked
    terminal = sys.stderr.isatty()
    return tqdm(
        items,
        desc=description,
        total=total,
        initial=done,
        unit=f" {unit}",
        unit_scale=True,
        delay=2,
        mininterval=0.2 if terminal else 30,
        dynamic_ncols=True,
        leave=not terminal,
    )
