"""Checkpoints are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch

PARTIAL = ".*.partial"  # the names of files that were never finished


def save(state: dict[str, Any], path: str | Path) -> None:
    """Writes ``state`` to a temporary name beside ``path``, flushes it to disk, and moves it.

    Raises:
        OSError: the folder cannot be written or the disk is full; ``path`` is as it was.
    """
    with _replaced(Path(path)) as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:  # what torch makes of a write that failed
            raise OSError(str(error).splitlines()[0]) from error


def copy(source: str | Path, path: str | Path) -> None:
    """Copies a checkpoint, as ``save`` writes one.

    Raises:
        OSError: as ``save``.
    """
    with Path(source).open("rb") as whole, _replaced(Path(path)) as file:
        shutil.copyfileobj(whole, file, 1 << 20)


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
