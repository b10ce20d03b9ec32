"""Gives a task its state from the checkpoint of a run that continues."""

from __future__ import annotations

from pathlib import Path

from fairseq.tasks import FairseqTask

from ..checkpoint_error import CheckpointError
from ..checkpoints.safe_loading import load_header


def load_task_state(path: str, task: FairseqTask) -> None:
    """Calls the task's ``load_state_dict``. fairseq itself does so only in commands that generate.

    Args:
        path: a checkpoint; nothing happens if it does not exist.

    Raises:
        CheckpointError: the task refuses the state, as of a model with other dictionaries.
    """
    if not Path(path).is_file():
        return
    state = load_header(Path(path)).get("task_state") or {}
    try:
        task.load_state_dict(state)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
