"""Where the prepared data of a run is: runs of several seeds or systems share one preparation."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path


def prepared_data(run: Path) -> Path:
    """The folder of raw/ to data-bin/ that a run was trained on: its own, the one that its training
    names in manifest.json, or else the one above it. ``run`` if there is none."""
    places = [run, *_named_in_manifest(run)]
    if (run / "checkpoints").is_dir():
        places += run.absolute().parents[:3]  # EXPERIMENT/SYSTEM/seeds/seed1
    return next((folder for folder in places if (folder / "data-bin").is_dir()), run)


def _named_in_manifest(run: Path) -> list[Path]:
    """The folder that the manifest names. If it contained the run, both may have been moved: the
    folder that is now as many levels above the run comes first."""
    try:
        stages = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["stages"]
        words = shlex.split(stages["train"][-1]["commands"][-1])
        following = dict(pairwise(words))
        data = Path(following["fairseq-train"]).parent
        trained = Path(following.get("--save-dir", "")).parent  # where the run was
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
    moved = []
    if trained.is_relative_to(data):
        height = len(trained.relative_to(data).parts)
        moved = [run.absolute(), *run.absolute().parents][height : height + 1]
    return [*moved, data]
