"""What lasts is not looked through for garbage at every turn of Python's collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def set_aside() -> None:
    """Exempts all objects there are from Python's garbage collection, until the next call, which
    first looks through those that were exempt. What is no longer referred to goes at once anyway.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextmanager
def left_alone() -> Iterator[None]:
    """Meanwhile all objects there were before are exempt; what ``set_aside`` exempted stays so."""
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
