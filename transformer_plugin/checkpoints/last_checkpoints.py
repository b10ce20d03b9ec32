"""The last checkpoints of a run's folder, at equal intervals (section 6.1)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ..checkpoint_error import CheckpointError
from ..files import shown_path
from .num_updates import num_updates
from .safe_loading import load_header
from .sections import saved_options

logger = logging.getLogger(__name__)

_NAMES = {  # names of checkpoint files; the last group counts updates or epochs
    "updates": re.compile(r"checkpoint_(\d+)_(\d+)\.pt"),
    "epochs": re.compile(r"checkpoint(\d+)\.pt"),
}
_EXAMPLES = {"updates": "checkpoint_3_1500.pt", "epochs": "checkpoint3.pt"}
_INTERVALS = {"updates": "save_interval_updates", "epochs": "save_interval"}  # options of fairseq
KINDS = sorted(_NAMES)


class _Saved(NamedTuple):
    """A checkpoint: updates made before it was saved, epoch in its name, path and contents."""

    updates: int
    epoch: int
    path: Path
    header: dict[str, Any]


def is_numbered(name: str, *kinds: str) -> bool:
    """Whether a file has the name of a checkpoint of an epoch or of an interval of updates, or of
    one of these ``KINDS`` only."""
    return any(_NAMES[kind].fullmatch(name) for kind in kinds or KINDS)


def last_checkpoints(
    folder: str | Path, count: int, by: str, allow_fewer: bool = False
) -> list[Path]:
    """The last ``count`` checkpoints of a run's folder, newest last.

    They are ordered by the update numbers in the files, which may differ from those in the names.

    Args:
        by: ``updates`` (checkpoint_EPOCH_UPDATES.pt; if fairseq saved none because an interval
            ended with an epoch, checkpointEPOCH.pt or checkpoint_last.pt of that update) or
            ``epochs`` (checkpointEPOCH.pt).
        allow_fewer: if there are fewer, return all and log a warning; if there is none,
            checkpoint_last.pt.

    Raises:
        CheckpointError: there are fewer, or one between them is missing; or the folder is; or the
            run saves the other kind alone, or has gone on to do so.
    """
    folder = Path(folder)
    below = folder / "checkpoints"
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder; expected one with checkpoints")
    if below.is_dir() and not any(folder.glob("checkpoint*.pt")):
        raise CheckpointError(f"{folder}: no checkpoints; those of this run are in {below}")
    found = sorted(_saved(folder, by), key=lambda saved: saved[:3])
    last = _last(folder)
    _check_kind(folder, by, found, last)
    newest = last or (found[-1] if found else None)
    interval = _setting(newest.header, _INTERVALS[by]) if newest else None
    numbered = {saved.updates if by == "updates" else saved.epoch: saved for saved in found}
    if by == "updates" and interval:
        for saved in [*_saved(folder, "epochs"), *([last] if last else [])]:
            if saved.updates and saved.updates % interval == 0:
                numbered.setdefault(saved.updates, saved)
        numbered = dict(sorted(numbered.items()))
    if not numbered and last and allow_fewer:  # training ended before the first interval
        numbered[last.updates] = last
    if len(numbered) < count:
        are = "is 1 checkpoint" if len(numbered) == 1 else f"are {len(numbered)} checkpoints"
        text = f"{shown_path(folder)}: there {are} by {by}, not {count}"
        if not numbered or not allow_fewer:
            remedy = "average fewer, or keep more" if numbered else "keep them"
            raise CheckpointError(
                f"{text} ({_EXAMPLES[by]}, ...); {remedy} with --keep-interval-updates or"
                " --keep-last-epochs"
            )
        logger.warning("%s: averaging what there is", text)
    chosen = dict(list(numbered.items())[-count:])
    *_, end = chosen.values()
    if last and end.updates < last.updates:
        logger.warning(
            "%s: averaging up to %s, of update %d: the run has gone on to update %d",
            shown_path(folder),
            end.path.name,
            end.updates,
            last.updates,
        )
    if interval:
        _check_gaps(folder, by, chosen, interval)
    return [saved.path for saved in chosen.values()]


def _check_kind(folder: Path, by: str, found: list[_Saved], last: _Saved | None) -> None:
    """Checks that the run, which saved ``last``, saves checkpoints by updates or by epochs."""
    if last is None or _saves(last.header, by):
        return
    other = next(kind for kind in KINDS if kind != by)
    advice = f"average those by {other}: --by {other}, or SAVE_UPDATES of a recipe as in training"
    if found and found[-1].updates < last.updates:
        raise CheckpointError(
            f"{shown_path(folder)}: the run no longer saves checkpoints by {by}:"
            f" {found[-1].path.name} is of update {found[-1].updates}, checkpoint_last.pt of"
            f" {last.updates}; {advice}"
        )
    if not found and any(_saved(folder, other)):
        raise CheckpointError(
            f"{shown_path(folder)}: the run saves no checkpoints by {by}; {advice}"
        )


def _check_gaps(folder: Path, by: str, chosen: dict[int, _Saved], interval: int) -> None:
    """Checks that consecutive checkpoints are ``interval`` updates or epochs apart."""
    numbers = list(chosen)
    for i, (one, following) in enumerate(pairwise(numbers), start=1):
        if following - one != interval:
            raise CheckpointError(
                f"{folder}: between {chosen[one].path.name} and {chosen[following].path.name}"
                f" the checkpoint of {by} {following - interval} is missing"
                f" (--{_INTERVALS[by].replace('_', '-')} {interval}); average"
                f" --last {len(numbers) - i}, or name files with --inputs"
            )


def _saved(folder: Path, by: str) -> Iterator[_Saved]:
    """The checkpoints that are named by updates or by epochs."""
    for path in folder.glob("checkpoint*.pt"):
        if match := _NAMES[by].fullmatch(path.name):
            header = load_header(path)
            updates = num_updates(header)
            if updates is None:  # an old checkpoint
                updates = int(match.groups()[-1])
            yield _Saved(updates, int(match[1]), path, header)


def _last(folder: Path) -> _Saved | None:
    path = folder / "checkpoint_last.pt"
    if not path.exists():
        return None
    header = load_header(path)
    return _Saved(num_updates(header) or 0, 0, path, header)


def _saves(header: dict[str, Any], by: str) -> bool:
    """Whether the run saves checkpoints of this kind, as far as its settings say."""
    if by == "epochs":
        return not _setting(header, "no_epoch_checkpoints")
    return bool(_setting(header, _INTERVALS[by]) != 0)


def _setting(header: dict[str, Any], name: str) -> Any:
    """An option of saving checkpoints; None if the header does not have it."""
    return saved_options(header, "checkpoint").get(name)
