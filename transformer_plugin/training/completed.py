"""Whether training was complete before this process started: fairseq would make one more update
each time its command is repeated."""

from __future__ import annotations

from fairseq.trainer import Trainer

from . import early_stopping


def reached_limit(trainer: Trainer) -> str | None:
    """Which limit the training of the loaded checkpoint has reached, for the log; None if there is
    something left to train."""
    limits, patience = trainer.cfg.optimization, trainer.cfg.checkpoint.patience
    if 0 < limits.max_update <= trainer.get_num_updates():
        return f"--max-update {limits.max_update} is reached"
    if early_stopping.has_run_out(patience):
        return f"--patience {patience} has run out"
    if 0 < limits.stop_time_hours < trainer._previous_training_time / 3600:
        return f"--stop-time-hours {limits.stop_time_hours:g} is reached"
    return None
