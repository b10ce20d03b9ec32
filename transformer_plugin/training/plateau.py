"""Continues ``--lr-scheduler reduce_lr_on_plateau``.

fairseq saves a checkpoint before the schedule's step at the end of the epoch, does not make this
step when the run continues, and does not save the number of epochs without a better score.
"""

from __future__ import annotations

from typing import Any

from fairseq.optim.lr_scheduler import FairseqLRScheduler
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule


def num_bad_epochs(schedule: FairseqLRScheduler) -> int:
    """Epochs since the last better score; 0 for other schedules."""
    is_plateau = isinstance(schedule, ReduceLROnPlateauLRSchedule)
    return schedule.lr_scheduler.num_bad_epochs if is_plateau else 0


def restore(schedule: FairseqLRScheduler, extra_state: dict[str, Any]) -> None:
    """Restores ``num_bad_epochs`` from a checkpoint, and makes the step of the epoch that ends with
    it. A checkpoint that has no validation score was saved after this step."""
    if isinstance(schedule, ReduceLROnPlateauLRSchedule):
        schedule.lr_scheduler.num_bad_epochs = extra_state.get("num_bad_epochs", 0)
        position = extra_state["train_iterator"]
        if position["iterations_in_epoch"] == 0:
            schedule.step(position["epoch"] - 1, extra_state["val_loss"])
