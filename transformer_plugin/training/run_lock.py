"""Allows only one training run at a time in a checkpoint folder."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ..lock import PATIENCE, LockedError, file_lock

_held: dict[Path, ExitStack] = {}  # until this process ends


def hold_lock(folder: Path, patience: float = PATIENCE) -> None:
    """Keeps other runs out of ``folder`` until this process ends, however it ends.

    Args:
        patience: seconds to wait for a run that is just ending.

    Raises:
        SystemExit: another run trains into the folder.
    """
    path = folder.resolve() / ".lock"
    if path in _held:
        return
    lock = ExitStack()
    try:
        lock.enter_context(file_lock(path, "fairseq-train", patience))
    except LockedError as error:
        raise SystemExit(f"{error}, or give this run another --save-dir") from None
    _held[path] = lock
