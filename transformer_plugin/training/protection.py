"""Puts the safe trainer, and the answer to signals, into fairseq-train."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from . import early_stopping
from .durable_files import write_durably
from .interruption import EXIT_CODE, requested
from .interval_checkpoints import saving_each_interval
from .trainer import SafeTrainer

logger = logging.getLogger(__name__)


def protect_training() -> None:
    """Protects the run of fairseq-train that this process is, if it is one. Again changes nothing.

    fairseq has no place to register a trainer: the command's own names are replaced.
    """
    for name in ("fairseq_cli.train", "__main__"):
        module = sys.modules.get(name)
        if module is not None and getattr(module, "Trainer", None) is Trainer:
            _protect(module)


def _protect(train: ModuleType) -> None:
    write_durably()
    checkpoint_utils.save_checkpoint = saving_each_interval(checkpoint_utils.save_checkpoint)
    early_stopping.watch(train.should_stop_early)
    train.Trainer = SafeTrainer  # type: ignore[attr-defined]
    train.validate_and_save = _then_stop_if_asked(train.validate_and_save)  # type: ignore


def _then_stop_if_asked(validate_and_save: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function, which it calls after each update, and then the end of training, with
    a checkpoint, if a signal has asked for it."""

    @functools.wraps(validate_and_save)
    def and_stop(cfg: Any, trainer: Trainer, task: Any, epoch_itr: Any, *rest: Any) -> Any:
        losses, should_stop = validate_and_save(cfg, trainer, task, epoch_itr, *rest)
        signal = requested(trainer.device)
        if signal and not should_stop:
            checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
            logger.info(
                "%s: training stops after update %d, which is saved; the same command goes on"
                " (exit code %d)",
                signal,
                trainer.get_num_updates(),
                EXIT_CODE,
            )
            raise SystemExit(EXIT_CODE)
        return losses, should_stop

    return and_stop
