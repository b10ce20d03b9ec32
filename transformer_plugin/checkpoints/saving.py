"""Writes checkpoints atomically."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch

from ..files import atomic_write, check_target


def save(state: dict[str, Any], path: str | Path) -> None:
    """Writes a checkpoint atomically; creates its folder if necessary.

    Raises:
        OSError: the folder cannot be written or the disk is full; ``path`` is not changed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "wb") as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:  # torch's error for a failed write
            raise OSError(str(error).splitlines()[0]) from error


def check_output(path: str | Path, *inputs: str | Path) -> None:
    """Checks, before work whose result would be lost, that ``save`` can write ``path``; creates its
    folder if necessary.

    Raises:
        IsADirectoryError: ``path`` is a folder.
        OSError: its folder cannot be created.
        ValueError: ``path`` is one of the inputs.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    check_target(path, *map(Path, inputs))


def copy(source: str | Path, path: str | Path) -> None:
    """Copies a checkpoint atomically.

    Raises:
        OSError: see ``save``.
    """
    with Path(source).open("rb") as whole, atomic_write(Path(path), "wb") as file:
        shutil.copyfileobj(whole, file, 1 << 20)
