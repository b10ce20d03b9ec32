"""Checkpoints are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch


def save(state: dict[str, Any], path: str | Path) -> None:
    """Writes ``state`` to a temporary name beside ``path``, flushes it to disk, and moves it.

    Raises:
        OSError: the folder cannot be written or the disk is full; ``path`` is as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            torch.save(state, file)
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
