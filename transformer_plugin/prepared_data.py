"""Where the prepared data of a run is: runs of several seeds or systems share one preparation."""

from __future__ import annotations

import json
import shlex
from pathlib import Path


def prepared_data(run: Path) -> Path:
    """The folder of raw/ to data-bin/ that a run was trained on: its own, the one that its training
    names in manifest.json, or else the one above it. ``run`` if there is none."""
    places = [run, *_named_in_manifest(run)]
    if (run / "checkpoints").is_dir():
        places += run.absolute().parents[:3]  # EXPERIMENT/SYSTEM/seeds/seed1
    return next((folder for folder in places if (folder / "data-bin").is_dir()), run)


def _named_in_manifest(run: Path) -> list[Path]:
    try:
        stages = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["stages"]
        words = shlex.split(stages["train"][-1]["commands"][-1])
        return [Path(words[words.index("fairseq-train") + 1]).parent]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
