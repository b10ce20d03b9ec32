"""Makes fairseq-train use ``SafeTrainer`` and stop on a signal."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from ..exit_status import INTERRUPTED
from . import early_stopping
from .atomic_checkpoints import write_atomically
from .best_metric import refusing_wrong_metrics
from .collectives import wait_for_all
from .interruption import requested
from .interval_checkpoints import saving_each_interval, saving_the_last_epoch
from .same_run import RESETS
from .trainer import SafeTrainer

logger = logging.getLogger(__name__)


def protect_training() -> None:
    """Replaces fairseq-train's trainer and its functions that save, if this process runs it.

    fairseq has no registry of trainers, so the names in the command's module are replaced. A second
    call changes nothing.
    """
    for name in ("fairseq_cli.train", "__main__"):
        module = sys.modules.get(name)
        if module is not None and getattr(module, "Trainer", None) is Trainer:
            _protect(module)


def _protect(train: ModuleType) -> None:
    # torchrun and Slurm send SIGTERM to the process group. Processes that load batches would die
    # of it before the trainer has saved, so they leave the group.
    os.register_at_fork(after_in_child=os.setpgrp)
    write_atomically()
    checkpoint_utils.save_checkpoint = saving_each_interval(checkpoint_utils.save_checkpoint)
    early_stopping.watch(train.should_stop_early)
    train.Trainer = SafeTrainer  # type: ignore[attr-defined]
    validate_and_save = refusing_wrong_metrics(saving_the_last_epoch(train.validate_and_save))
    train.validate_and_save = _stopping_on_signals(validate_and_save)  # type: ignore[attr-defined]


def _stopping_on_signals(validate_and_save: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function that fairseq calls after each update: if a signal was received, it saves a
    checkpoint and ends the process. After a skipped update within an epoch there is nothing new to
    validate and save; fairseq would do so again if the update before it ended an interval."""

    @functools.wraps(validate_and_save)
    def wrapper(
        cfg: Any,
        trainer: SafeTrainer,
        task: Any,
        epoch_itr: Any,
        valid_subsets: list[str],
        end_of_epoch: bool,
    ) -> Any:
        losses, should_stop = [None], False
        if end_of_epoch or trainer.get_num_updates() == trainer.update:
            losses, should_stop = validate_and_save(
                cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch
            )
        signal = requested(trainer.device)
        if signal and not should_stop:
            if epoch_itr.end_of_epoch():
                trainer.lr_step(epoch_itr.epoch, losses[0])  # as fairseq would do next
            checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
            wait_for_all(trainer.device)  # a launcher may end all processes soon after the first
            logger.info(
                "%s: training has stopped after update %d, which is %s (exit code %d)",
                signal,
                trainer.get_num_updates(),
                _what_is_saved(cfg.checkpoint),
                INTERRUPTED,
            )
            raise SystemExit(INTERRUPTED)
        return losses, should_stop

    return wrapper


def _what_is_saved(cfg: Any) -> str:
    """The end of the message of a stopped run, by fairseq's options of checkpoints."""
    if cfg.no_save or cfg.no_last_checkpoints:
        return f"not saved because of {'--no-save' if cfg.no_save else '--no-last-checkpoints'}"
    if cfg.restore_file not in ("checkpoint_last.pt", f"{cfg.save_dir}/checkpoint_last.pt"):
        return f"saved; without --restore-file {cfg.restore_file} the same command resumes"
    if resets := [f"--{name.replace('_', '-')}" for name in RESETS if getattr(cfg, name)]:
        return f"saved; without {' '.join(resets)} the same command resumes"
    return "saved; run the same command to resume"
