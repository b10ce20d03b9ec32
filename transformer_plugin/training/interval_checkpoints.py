"""Saves every ``--save-interval-updates``, also at the end of an epoch, and the last epoch.

If an interval and an epoch end with the same update, fairseq writes only the epoch's checkpoint, or
none with ``--no-epoch-checkpoints``. The average of the last N intervals would miss that update. If
``--max-epoch`` is not a multiple of ``--save-interval``, fairseq loses the epochs after the last
save.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer
from omegaconf import open_dict


def saving_each_interval(save_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps fairseq's ``save_checkpoint``. If an interval and an epoch end together, it also writes
    ``checkpoint_EPOCH_UPDATES.pt``, and removes old ones as set by ``--keep-interval-updates``. If
    ``checkpoint_best.pt`` is of that update, it is written once more."""

    @functools.wraps(save_checkpoint)
    def save(cfg: Any, trainer: Trainer, epoch_itr: Any, val_loss: float | None) -> Any:
        saved = save_checkpoint(cfg, trainer, epoch_itr, val_loss)
        interval = cfg.save_interval_updates
        if interval > 0 and trainer.get_num_updates() % interval == 0 and epoch_itr.end_of_epoch():
            only_interval = copy.copy(cfg)
            with open_dict(only_interval):
                only_interval.no_last_checkpoints = True
                only_interval.keep_best_checkpoints = 0
            save_checkpoint(only_interval, trainer, _WithinEpoch(epoch_itr), val_loss)
        return saved

    return save


def saving_the_last_epoch(validate_and_save: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function that fairseq calls after each update, which saves one epoch in
    ``--save-interval``: the epoch ``--max-epoch`` is saved too."""

    @functools.wraps(validate_and_save)
    def wrapper(
        cfg: Any, trainer: Trainer, task: Any, epoch_itr: Any, subsets: Any, end_of_epoch: bool
    ) -> Any:
        losses, should_stop = validate_and_save(
            cfg, trainer, task, epoch_itr, subsets, end_of_epoch
        )
        is_last = end_of_epoch and epoch_itr.epoch == cfg.optimization.max_epoch
        if is_last and not should_stop and epoch_itr.epoch % cfg.checkpoint.save_interval:
            checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, losses[0])
        return losses, should_stop

    return wrapper


class _WithinEpoch:
    """fairseq's epoch iterator, except that it never reports the end of the epoch."""

    def __init__(self, epoch_itr: Any) -> None:
        self._epoch_itr = epoch_itr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoch_itr, name)

    def end_of_epoch(self) -> bool:
        return False
