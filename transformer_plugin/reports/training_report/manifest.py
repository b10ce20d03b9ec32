"""Reads facts about training from the manifest of a recipe's run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Manifest:
    """``manifest.json`` of a run's folder; a missing or broken one counts as empty."""

    def __init__(self, folder: Path) -> None:
        try:
            self._stages = json.loads((folder / "manifest.json").read_text("utf-8"))["stages"]
        except (OSError, ValueError, LookupError, TypeError):
            self._stages = {}

    def _last(self, stage: str, *names: str) -> Any:
        """The value at ``names`` in the last entry of a stage; None if it is missing."""
        try:
            found = self._stages[stage][-1]
            for name in names:
                found = found[name]
        except (LookupError, TypeError):
            return None
        return found

    @property
    def machine(self) -> str | None:
        """The hardware that the run was trained on."""
        gpus, cpu = self._last("train", "hardware", "gpus"), self._last("train", "hardware", "cpu")
        if gpus:
            return f"{len(gpus)} x {gpus[0]}"
        return f"{self._last('train', 'hardware', 'cores')} cores of {cpu}" if cpu else None

    @property
    def commit(self) -> str | None:
        """The commit of the code that the run was trained with."""
        commit = self._last("train", "code", "commit")
        changed = " with changes" if self._last("train", "code", "changed") else ""
        return f"{commit[:12]}{changed}" if isinstance(commit, str) else None
