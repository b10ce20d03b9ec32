"""The checkpoint that training goes on from: the newest one that is whole."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import Any

from ..checkpoints.safe_loading import CheckpointError, load

logger = logging.getLogger(__name__)


def newest_good(last: Path) -> Path:
    """``last`` if it is whole or missing, else the newest checkpoint beside it that is whole and
    can be trained on; else ``last``, which is missing then.

    Those that are not whole are set aside under a name that nothing reads, and reported.
    """
    if not last.exists() or not _set_aside_if_broken(last):
        return last
    others = (path for path in last.parent.glob("checkpoint*.pt") if not _set_aside_if_broken(path))
    good = [(n, path) for path in others if (n := finished_updates(path)) is not None]
    if not good:
        logger.warning("no whole checkpoint is left in %s: training starts anew", last.parent)
        return last
    updates, path = max(good)
    logger.warning("training goes on from %s, of update %d", path, updates)
    return path


def finished_updates(path: Path) -> int | None:
    """Updates that were made before the checkpoint, or None where training cannot go on from it:
    it is broken, or an average."""
    try:
        state = _contents(path)
        if not state.get("last_optimizer_state"):
            return None
        return int(state["optimizer_history"][-1]["num_updates"])
    except (CheckpointError, OSError, LookupError, TypeError):
        return None


def set_aside(path: Path, why: str) -> Path:
    """Renames ``path`` to the first free name ``path.WHY``, ``path.WHY2``, ...; returns it."""
    aside, n = path.with_name(f"{path.name}.{why}"), 1
    while aside.exists():
        n += 1
        aside = path.with_name(f"{path.name}.{why}{n}")
    return path.rename(aside)


def _set_aside_if_broken(path: Path) -> bool:
    try:
        _contents(path)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
            if damaged is not None:
                raise CheckpointError(f"{path}: the checksum of {damaged} in it is wrong")
    except (CheckpointError, zipfile.BadZipFile) as error:
        logger.warning("%s. It is kept as %s", error, set_aside(path, "broken"))
        return True
    return False


def _contents(path: Path) -> dict[str, Any]:
    """What the file holds; its tensors stay on the disk where the format allows it."""
    state = load(str(path), **({"mmap": True} if zipfile.is_zipfile(path) else {}))
    if not isinstance(state, dict) or "model" not in state:
        raise CheckpointError(f"{path}: no fairseq checkpoint")
    return state
