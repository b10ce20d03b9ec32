"""Finds the checkpoint to resume from: the newest undamaged one."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import Any

from ..checkpoint_error import CheckpointError, DamagedCheckpoint
from ..checkpoints.num_updates import num_updates
from ..checkpoints.safe_loading import damaged_part, load

logger = logging.getLogger(__name__)


def newest_good(last: Path) -> Path:
    """The checkpoint to resume from.

    It is ``last`` if that is undamaged, missing, or refused for what it holds. If ``last`` is
    damaged, it is the newest undamaged checkpoint in the same folder that training can resume from,
    or ``last`` if there is none. Damaged files are renamed to ``NAME.broken``, and a warning is
    logged.

    Raises:
        CheckpointError: ``last`` is a folder.
    """
    if last.is_dir():
        raise CheckpointError(f"{last}: a folder, but a checkpoint is a file: rename the folder")
    if not last.exists() or not _set_aside_if_broken(last):
        return last
    files = filter(Path.is_file, last.parent.glob("checkpoint*.pt"))
    others = (path for path in files if not _set_aside_if_broken(path))
    good = [(n, path) for path in others if (n := finished_updates(path)) is not None]
    if not good:
        logger.warning("no whole checkpoint is left in %s: training starts again", last.parent)
        return last
    updates, path = max(good)
    logger.warning("training resumes from %s, of update %d", path, updates)
    return path


def finished_updates(path: Path) -> int | None:
    """Updates made before the checkpoint was saved; None if training cannot resume from it, because
    it is broken or an average."""
    try:
        state = _contents(path)
        if not state.get("last_optimizer_state"):
            return None
        return num_updates(state)
    except (CheckpointError, OSError, LookupError, AttributeError, TypeError):
        return None


def set_aside(path: Path, why: str) -> Path:
    """Renames ``path`` to the first free name of ``path.WHY``, ``path.WHY2``, ..., and returns the
    new path."""
    aside, n = path.with_name(f"{path.name}.{why}"), 1
    while aside.exists():
        n += 1
        aside = path.with_name(f"{path.name}.{why}{n}")
    return path.rename(aside)


def _set_aside_if_broken(path: Path) -> bool:
    try:
        if part := damaged_part(path):
            raise DamagedCheckpoint(f"{path}: the checksum of {part} in it is wrong")
        _contents(path)
    except (DamagedCheckpoint, zipfile.BadZipFile) as error:
        logger.warning("%s. It is renamed to %s", error, set_aside(path, "broken"))
        return True
    except CheckpointError:  # a whole file; whoever loads it gets the reason
        pass
    return False


def _contents(path: Path) -> dict[str, Any]:
    state = load(path, mmap=True)
    if not isinstance(state, dict) or "model" not in state:
        raise CheckpointError(f"{path}: not a checkpoint of fairseq")
    return state
