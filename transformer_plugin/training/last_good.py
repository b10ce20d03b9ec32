"""Finds the checkpoint to resume from: the newest undamaged one.

fairseq writes the checkpoint of an epoch or interval, and then copies it to ``checkpoint_last.pt``.
After a full disk, or if the process was killed in between, the latter is older or missing.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

from ..checkpoint_error import CheckpointError, DamagedCheckpoint
from ..checkpoints.last_checkpoints import is_numbered
from ..checkpoints.num_updates import num_updates
from ..checkpoints.safe_loading import damaged_part, load, load_header
from ..checkpoints.saving import copy
from .same_run import resumes, was_saved_here

logger = logging.getLogger(__name__)


def resumed_from(last: Path, settings: Any) -> Path:
    """The ``newest_good`` checkpoint. Unless the disk is full, it is copied to ``last``, which a
    run that has nothing left to train would not write, and to ``checkpoint_best.pt`` if it is the
    best one: the save that failed has not done so. If it is ``last``, checkpoints that have been
    abandoned, or whose count starts again, are set aside.

    Args:
        settings: the section ``checkpoint`` of the command's settings.

    Raises:
        CheckpointError: see ``newest_good``.
    """
    good = newest_good(last, resumes(settings), settings.finetune_from_model)
    if settings.no_save:
        return good
    if good != last:
        with contextlib.suppress(OSError):
            if _is_best(good):
                copy(good, last.with_name("checkpoint_best.pt"))
            copy(good, last)
    elif resumes(settings):
        _set_aside_abandoned(last)
    else:
        _set_aside_former_counts(last, settings)
    return good


def newest_good(last: Path, resumes: bool = True, base: str | None = None) -> Path:
    """The checkpoint to resume from.

    It is ``saved_after(last)``, if there is one; else ``last``, if that is undamaged, missing, or
    refused for what it holds. If ``last`` is damaged, it is the newest undamaged checkpoint in the
    same folder that training can resume from, or ``last`` if there is none. Damaged files are
    renamed to ``NAME.broken``, and a warning is logged.

    Args:
        resumes: whether ``saved_after(last)`` is preferred to ``last``.
        base: the model that a fine-tuning run starts from; fairseq has already chosen ``last``.

    Raises:
        CheckpointError: ``last`` is a folder; or a fine-tuning run has no undamaged checkpoint.
    """
    if last.is_dir():
        raise CheckpointError(f"{last}: a folder, but a checkpoint is a file: rename the folder")
    if resumes and (newer := saved_after(last)):
        why = "is older" if last.exists() else "is missing"
        logger.warning(
            "training resumes from %s, of update %d: %s %s", newer[1], newer[0], last.name, why
        )
        return newer[1]
    if not last.exists() or not _set_aside_if_broken(last):
        return last
    files = filter(Path.is_file, last.parent.glob("checkpoint*.pt"))
    others = (path for path in files if not _set_aside_if_broken(path))
    good = [(n, path) for path in others if (n := finished_updates(path)) is not None]
    if not good and base is not None:
        raise CheckpointError(
            f"{last}: damaged and set aside, and no whole checkpoint is left: give the same command"
            f" again to start from {base}"
        )
    if not good:
        logger.warning("no whole checkpoint is left in %s: training starts again", last.parent)
        return last
    updates, path = max(good)
    logger.warning("training resumes from %s, of update %d", path, updates)
    return path


def saved_after(last: Path) -> tuple[int, Path] | None:
    """The newest undamaged checkpoint of an epoch or interval that the same run saved after
    ``last``, which may be missing, and its updates; None if there is none."""
    written = done = -1
    if last.exists():
        saved = finished_updates(last, check_weights=False)
        if saved is None:
            return None
        written, done = _written(last), saved
    later = [path for path in _numbered(last.parent) if path.stat().st_mtime_ns > written]
    counted = [(finished_updates(path, check_weights=False), path) for path in later]
    newer = [(n, path) for n, path in counted if n is not None and n > done]
    own = (each for each in sorted(newer, reverse=True) if was_saved_here(each[1]))
    return next((each for each in own if not _set_aside_if_broken(each[1])), None)


def _set_aside_abandoned(last: Path) -> None:
    """Renames the run's numbered checkpoints that are older than ``last`` and further in updates
    and in the data, because somebody went back to an earlier one. As the highest numbers they would
    be averaged, and --keep-last-epochs would remove new checkpoints instead."""
    done = finished_updates(last, check_weights=False) if last.exists() else None
    if done is None or not was_saved_here(last):
        return
    written, place = _written(last), _place(last)
    older = [path for path in _numbered(last.parent) if path.stat().st_mtime_ns <= written]
    for path in older:
        updates = finished_updates(path, check_weights=False)
        further = updates is not None and updates > done and _place(path) > place
        if further and was_saved_here(path):
            logger.warning(
                "%s, of update %s, is renamed to %s: %s goes back to update %d",
                *(path, updates, set_aside(path, "abandoned"), last.name, done),
            )


def _set_aside_former_counts(last: Path, settings: Any) -> None:
    """Renames the run's checkpoints of intervals if --reset-optimizer restarts the count of
    updates, and those of epochs if --reset-dataloader restarts that of epochs. Their numbers would
    be the highest for a long time, with the same consequences."""
    if not _is_own(last):
        return
    for path in _numbered(last.parent):
        reset = "reset_optimizer" if is_numbered(path.name, "updates") else "reset_dataloader"
        if settings[reset] and _is_own(path):
            flag, aside = f"--{reset.replace('_', '-')}", set_aside(path, "abandoned")
            logger.warning("%s is renamed to %s: %s restarts its count", path, aside, flag)


def _is_own(path: Path) -> bool:
    """Whether the run itself has saved this, and could resume from it."""
    return finished_updates(path, check_weights=False) is not None and was_saved_here(path)


def _numbered(folder: Path) -> list[Path]:
    return [path for path in folder.glob("checkpoint*.pt") if is_numbered(path.name)]


def _written(path: Path) -> int:
    """A file that is moved or copied with its old time has a new ctime."""
    status = path.lstat()
    return max(status.st_mtime_ns, status.st_ctime_ns)


def _place(path: Path) -> tuple[int, int]:
    """The epoch, and the number of its batches, after which a checkpoint was saved."""
    place = _extra_state(path).get("train_iterator") or {}
    return place.get("epoch", 0), place.get("iterations_in_epoch", 0)


def _is_best(path: Path) -> bool:
    """Whether no earlier checkpoint of the run had a better score in validation."""
    state = _extra_state(path)
    return state.get("val_loss") is not None and state["val_loss"] == state.get("best")


def _extra_state(path: Path) -> dict[str, Any]:
    return load_header(path).get("extra_state") or {}


def finished_updates(path: Path, check_weights: bool = True) -> int | None:
    """Updates made before the checkpoint was saved; None if training cannot resume from it, because
    it is broken or an average."""
    try:
        state = _contents(path, check_weights)
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
    except DamagedCheckpoint as error:
        logger.warning("%s. It is renamed to %s", error, set_aside(path, "broken"))
        return True
    except CheckpointError:  # a whole file; whoever loads it gets the reason
        pass
    return False


def _contents(path: Path, check_weights: bool = True) -> dict[str, Any]:
    state = load(path, mmap=True, check_weights=check_weights)
    if "model" not in state:
        raise CheckpointError(f"{path}: not a checkpoint of fairseq")
    return state
