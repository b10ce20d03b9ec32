"""fairseq's trainer, which loses nothing: one run a folder, whole checkpoints, faults named."""

from __future__ import annotations

import atexit
import logging
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq import optim
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.trainer import Trainer
from torch import Tensor

from ..checkpoints.model_building import in_one_line, reported_in_one_line
from ..checkpoints.safe_loading import CheckpointError, load
from ..model import VaswaniTransformer
from ..modules.memory import take_over_tensors
from . import early_stopping, loading_threads
from .divergence import LossWatch
from .durable_files import remove_unfinished
from .freed_memory import keep_freed_memory
from .interruption import listen
from .last_good import newest_good
from .master_weights import full_state, master_weights, set_master_weights, weights_in
from .mixed_precision import FP16Optimizer
from .numeric_faults import NonFiniteGradientError, NumericFaults, batch_losses
from .rollback import roll_back, wider_precision
from .run_lock import hold_lock
from .time_left import TimeLeft
from .update_size import log_update_size, update_size

logger = logging.getLogger(__name__)


class SafeTrainer(Trainer):
    """What fairseq-train makes its updates by."""

    def __init__(self, cfg: Any, task: Any, *rest: Any) -> None:
        self._folder = Path(cfg.checkpoint.save_dir)
        if distributed_utils.is_master(cfg.distributed_training) and not cfg.checkpoint.no_save:
            hold_lock(self._folder)
            remove_unfinished(self._folder)
        if cfg.common.cpu:
            take_over_tensors()
        if cfg.dataset.update_ordered_indices_seed:  # else the seed of a resumed run's first epoch
            cfg.dataset.update_epoch_batch_itr = True
        super().__init__(cfg, task, *rest)
        if cfg.common.cpu:
            keep_freed_memory()
        self._faults = NumericFaults(self._folder, task.cfg.nonfinite_limit)
        self._said_update_size = False
        self._loss_watch = LossWatch(task.cfg.divergence_updates)
        limits = cfg.optimization
        self._time_left = TimeLeft(limits.max_update or 0, limits.max_epoch or 0)
        listen()
        atexit.register(loading_threads.stop)

    def _build_optimizer(self) -> None:
        """As fairseq's, which looks for this class by its name."""
        optim.FP16Optimizer = FP16Optimizer
        super()._build_optimizer()

    def load_checkpoint(self, filename: str, *rest: Any, **options: Any) -> Any:
        """Loads ``filename``, or, where that is the run's last checkpoint and broken, the newest
        whole one."""
        if Path(filename).name == "checkpoint_last.pt":
            good = str(newest_good(Path(filename))) if self.data_parallel_rank == 0 else ""
            if self.data_parallel_world_size > 1:
                good = distributed_utils.broadcast_object(
                    good, 0, self.data_parallel_process_group, dist_device=self.device
                )
            filename = good
        try:
            extra_state = super().load_checkpoint(filename, *rest, **options)
        except (CheckpointError, OSError):
            raise
        except SystemExit as error:
            raise SystemExit(f"{filename}: {error}") from None
        except Exception as error:  # fairseq says that the model does not take it, but not why
            if "Cannot load model parameters" in str(error):
                raise SystemExit(f"{filename}: {in_one_line(error.__context__)}") from None
            with reported_in_one_line(filename):
                raise
        if extra_state is not None:
            self._restore_master_weights(filename)
            if not options.get("reset_meters"):
                early_stopping.restore(extra_state.get("early_stopping", {}))
        return extra_state

    def save_checkpoint(self, filename: str, extra_state: dict[str, Any]) -> Any:
        """As fairseq's, with the counts of early stopping."""
        kept = {**extra_state, "early_stopping": early_stopping.counts()}
        return super().save_checkpoint(filename, kept)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint holds; weights in float32 where the optimizer has them."""
        state = super().state_dict()
        masters = master_weights(self.optimizer, self.get_model())
        if masters:
            state["model"] = full_state(self.get_model(), masters)
        return state

    def _restore_master_weights(self, filename: str) -> None:
        masters = master_weights(self.optimizer, self.get_model())
        if masters and self.data_parallel_rank == 0:
            masters = weights_in(self.get_model(), load(filename)["model"])
        if self.data_parallel_world_size > 1:
            for master in masters:
                distributed_utils.broadcast(master, 0, self.data_parallel_process_group)
        set_master_weights(self.optimizer, self.get_model(), masters)

    def get_train_iterator(self, *args: Any, **options: Any) -> Any:
        """As fairseq's; the first says how many tokens an update holds."""
        batches = super().get_train_iterator(*args, **options)
        share = self.cfg.optimization.update_freq[0]
        self._time_left.updates_an_epoch = -(-len(batches) // share)
        if not self._said_update_size and self.data_parallel_rank == 0:
            self._said_update_size = True
            self._log_update_size(batches)
        return batches

    def _log_update_size(self, batches: Any) -> None:
        model, data = self.get_model(), batches.dataset
        if isinstance(model, VaswaniTransformer) and getattr(data, "tgt_sizes", None) is not None:
            share = self.data_parallel_world_size * self.cfg.optimization.update_freq[0]
            found = update_size(
                model, batches.frozen_batches, data.src_sizes, data.tgt_sizes, share
            )
            log_update_size(found, str(self.cfg.model._name))

    def clip_grad_norm(self, clip_norm: float) -> Tensor:
        """The norm of the gradient, which is clipped.

        Raises:
            NonFiniteGradientError: it is not finite, and no loss scale is to blame.
        """
        norm = super().clip_grad_norm(clip_norm)
        if not self.cfg.common.amp and not torch.isfinite(norm).all():
            raise NonFiniteGradientError
        return norm

    def train_step(self, samples: list[dict[str, Any]], raise_oom: bool = False) -> Any:
        """One update, or none where its gradient is not finite.

        Raises:
            SystemExit: there were too many such updates, or training has diverged.
        """
        update = self.get_num_updates() + 1
        try:
            log = super().train_step(samples, raise_oom)
        except NonFiniteGradientError:
            self.zero_grad()
            if getattr(self.optimizer, "scaler", 0) is None:  # bf16, whose factor fairseq keeps
                self.optimizer._multiply_factor = 1.0
            self._faults.add(update, self.data_parallel_rank, batch_losses(samples, self._loss))
            return None
        except FloatingPointError as error:  # the loss scale of fp16 is at its minimum
            self._diverged(str(error), update)
        hours = self._time_left.hours(self.get_num_updates())
        if hours is not None:
            metrics.log_scalar("hours_left", hours, weight=0, priority=795, round=2)
        if log is not None and self._loss_watch.has_risen(update, float(log["loss"])):
            since = self._loss_watch.last_sound_update
            self._diverged(f"the loss has been rising since update {since}", since)
        return log

    def begin_epoch(self, epoch: int) -> None:
        """Begins an epoch, unless all updates were made before this process started.

        fairseq would make one more, each time that its command is given again.
        """
        most = self.cfg.optimization.max_update
        if 0 < most <= self.get_num_updates():
            logger.info("nothing to train: --max-update %d is reached", most)
            raise SystemExit(0)
        patience = self.cfg.checkpoint.patience
        if early_stopping.has_run_out(patience):
            logger.info("nothing to train: --patience %d has run out", patience)
            raise SystemExit(0)
        super().begin_epoch(epoch)

    @torch.no_grad()
    def _loss(self, sample: dict[str, Any]) -> Tensor:
        sample, _is_dummy = self._prepare_sample(sample)
        loss, _sample_size, _log = self.task.valid_step(sample, self.get_model(), self.criterion)
        return loss

    def _diverged(self, why: str, sound_update: int) -> NoReturn:
        common = self.cfg.common
        wider = wider_precision(common.fp16 or common.amp, common.bf16)
        advice = (
            f"update {self.get_num_updates()}: training has diverged: {why}. Lower --lr or raise"
            " --warmup-updates"
        )
        if self.task.cfg.on_divergence == "stop" or wider is None:
            wide = f", or train in {wider} (--on-divergence rollback)" if wider else ""
            raise SystemExit(f"{advice}{wide}. Checkpoints up to update {sound_update} are good")
        if self.data_parallel_world_size > 1:
            raise SystemExit(f"{advice}. Run again in {wider} on all processes")
        logger.warning(advice)
        try:
            roll_back(self._folder, sound_update, wider, self._optimizer_in(wider), self._shapes())
        except ValueError as error:
            raise SystemExit(f"{advice}. No rollback: {error}") from None

    def _optimizer_in(self, precision: str) -> str:
        """The class that fairseq trains by: a checkpoint of another is refused."""
        plain = OPTIMIZER_REGISTRY[self.cfg.optimizer._name].__name__
        return plain if precision == "fp32" else FP16Optimizer.__name__

    def _shapes(self) -> list[torch.Size]:
        return [p.shape for p in self.get_model().parameters() if p.requires_grad]
