"""One process at a time writes a thing: a lock that goes with the process, however that ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bad_input import BadInput


@contextmanager
def only_one(lock: Path, what: str) -> Iterator[None]:
    """Hold the file `lock`; BadInput when another process that `what` holds it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a", encoding="ascii") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which forked workers do not inherit
        except (BlockingIOError, PermissionError):
            raise BadInput(
                f"another process {what} at this moment and holds {lock}: wait for it, or end it"
            ) from None
        yield
