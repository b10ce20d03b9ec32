"""``--save-interval-updates`` holds at the end of an epoch, too.

Where an interval ends together with an epoch, fairseq writes the epoch's checkpoint alone, or with
``--no-epoch-checkpoints`` none: a mean of the last N intervals would be of other updates.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from fairseq.trainer import Trainer
from omegaconf import open_dict


def saving_each_interval(save_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's ``save_checkpoint``, which then also writes ``checkpoint_EPOCH_UPDATES.pt`` where
    an interval and an epoch end together, and removes old ones by ``--keep-interval-updates``."""

    @functools.wraps(save_checkpoint)
    def save(cfg: Any, trainer: Trainer, epoch_itr: Any, val_loss: float | None) -> Any:
        saved = save_checkpoint(cfg, trainer, epoch_itr, val_loss)
        interval = cfg.save_interval_updates
        if interval > 0 and trainer.get_num_updates() % interval == 0 and epoch_itr.end_of_epoch():
            only_interval = copy.copy(cfg)
            with open_dict(only_interval):
                only_interval.no_last_checkpoints = True
            save_checkpoint(only_interval, trainer, _WithinEpoch(epoch_itr), None)
        return saved

    return save


class _WithinEpoch:
    """An iterator of fairseq's that does not say that it is at the end of its epoch."""

    def __init__(self, epoch_itr: Any) -> None:
        self._epoch_itr = epoch_itr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoch_itr, name)

    def end_of_epoch(self) -> bool:
        return False
