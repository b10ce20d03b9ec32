"""The last checkpoints of a run's folder, at equal intervals (section 6.1)."""

from __future__ import annotations

import argparse
import logging
import re
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from .safe_loading import CheckpointError, load

logger = logging.getLogger(__name__)

_NAMES = {  # what a checkpoint's file is called, and the group that counts
    "updates": re.compile(r"checkpoint_\d+_(\d+)\.pt"),
    "epochs": re.compile(r"checkpoint(\d+)\.pt"),
}
_INTERVALS = {"updates": "save_interval_updates", "epochs": "save_interval"}  # options of fairseq
KINDS = sorted(_NAMES)


def last_checkpoints(
    folder: str | Path, count: int, by: str, allow_fewer: bool = False
) -> list[Path]:
    """The last ``count`` checkpoints of a run's folder, newest last.

    Args:
        by: ``updates`` (checkpoint_EPOCH_UPDATES.pt, and where fairseq saved none because an
            interval ended with an epoch, checkpointEPOCH.pt or checkpoint_last.pt of that update)
            or ``epochs`` (checkpointEPOCH.pt).
        allow_fewer: take all where there are fewer, but at least one, and log a warning.

    Raises:
        CheckpointError: there are fewer, or one between them is missing.
    """
    folder = Path(folder)
    numbered = _numbered(folder, by)
    interval = _interval(folder, by)
    if by == "updates" and interval:
        for path in [*_numbered(folder, "epochs").values(), folder / "checkpoint_last.pt"]:
            updates = _updates(path) if path.exists() else 0
            if updates and updates % interval == 0:
                numbered.setdefault(updates, path)
    if len(numbered) < count:
        found = f"{folder}: {count} checkpoints by {by} were asked for, {len(numbered)} are there"
        if not numbered or not allow_fewer:
            raise CheckpointError(
                f"{found} ({_NAMES[by].pattern}); average fewer, or keep more with"
                " --keep-interval-updates or --keep-last-epochs"
            )
        logger.warning("%s: all of them are averaged", found)
    chosen = sorted(numbered)[-count:]
    for one, next_one in pairwise(chosen):
        if interval and next_one - one != interval:
            raise CheckpointError(
                f"{folder}: between {numbered[one].name} and {numbered[next_one].name} the"
                f" checkpoint of {by} {next_one - interval} is missing"
                f" (--{_INTERVALS[by].replace('_', '-')} {interval}); average"
                f" --last {len(chosen) - chosen.index(next_one)}, or name files with --inputs"
            )
    return [numbered[number] for number in chosen]


def _numbered(folder: Path, by: str) -> dict[int, Path]:
    """The files of a kind by the number in their names, in order."""
    return dict(
        sorted(
            (int(match.group(1)), path)
            for path in folder.glob("checkpoint*.pt")
            if (match := _NAMES[by].fullmatch(path.name))
        )
    )


def _interval(folder: Path, by: str) -> int | None:
    """How far apart the run saved its newest checkpoints, or None where they do not say."""
    files = [*_numbered(folder, by).values(), folder / "checkpoint_last.pt"]
    newest = next((path for path in reversed(files) if path.exists()), None)
    if newest is None:
        return None
    state = _contents(newest)
    settings = (state.get("cfg") or {}).get("checkpoint") or state.get("args") or {}
    if isinstance(settings, argparse.Namespace):
        settings = vars(settings)
    return settings.get(_INTERVALS[by])


def _updates(path: Path) -> int:
    return (_contents(path).get("optimizer_history") or [{}])[-1].get("num_updates", 0)


def _contents(path: Path) -> dict[str, Any]:
    """A checkpoint, its tensors left on the disk where the format allows it."""
    return load(path, mmap=zipfile.is_zipfile(path))
