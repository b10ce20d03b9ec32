"""fairseq's trainer with locks, safe checkpoints, and handling of faults and divergence."""

from __future__ import annotations

import atexit
import logging
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from torch import Tensor

from ..files import remove_unfinished
from ..task_config import VaswaniTranslationConfig
from . import early_stopping, loading_threads, plateau
from .batch_lengths import prepare_lengths
from .checkpoint_check import check_finite, check_loads
from .completed import reached_limit
from .data_position import DataPosition
from .divergence import DivergenceDetector
from .fine_tuning import check_base
from .interruption import listen
from .last_good import resumed_from
from .loading_errors import explained
from .malloc import disable_trimming, map_tensors
from .master_weights import full_state, master_weights, restore_master_weights
from .mixed_precision import optimizers_for_half_precision
from .moving_average import TiedEMA, average_from_weights
from .numeric_faults import NonFiniteGradientError, NumericFaults, batch_losses
from .rollback import check_resumes, optimizer_class, roll_back, wider_precision
from .run_lock import hold_lock
from .same_run import continues_itself, has_same_loss
from .task_state import load_task_state
from .time_left import TimeLeft
from .update_size import log_mean_update

logger = logging.getLogger(__name__)


class SafeTrainer(Trainer):
    """The trainer of fairseq-train when the plugin is loaded."""

    def __init__(self, cfg: Any, task: Any, *rest: Any) -> None:
        self._folder = Path(cfg.checkpoint.save_dir)
        if distributed_utils.is_master(cfg.distributed_training) and not cfg.checkpoint.no_save:
            hold_lock(self._folder)
            remove_unfinished(self._folder / "checkpoint*.pt", is_pattern=True)
        if cfg.dataset.update_ordered_indices_seed:  # else the first epoch's seed is reused
            cfg.dataset.update_epoch_batch_itr = True
        loading_threads.avoid_forks(cfg.dataset, cfg.distributed_training.distributed_world_size)
        self._first_update_on_cpu = cfg.common.cpu and map_tensors()
        super().__init__(cfg, task, *rest)
        check_finite(self)
        self._faults = NumericFaults(self._folder, _option(task, "nonfinite_limit"))
        self.update = 0  # which train_step has made, or skipped
        self._logged_update_size = False
        self._frozen: dict[str, Tensor] = {}
        self._position = DataPosition(self.data_parallel_world_size, cfg.dataset.grouped_shuffling)
        self._divergence = DivergenceDetector(_option(task, "divergence_updates"))
        self._time_left = TimeLeft.within(cfg.optimization)
        listen()
        atexit.register(loading_threads.stop)

    def _build_ema(self) -> None:
        if self.cfg.ema.store_ema:
            if self.cfg.common.fp16 or self.cfg.common.bf16:  # small changes would round to zero
                self.cfg.ema.ema_fp32 = True
            self._ema = TiedEMA(self._model, self.cfg.ema, self.device, self._full_state)

    def _build_optimizer(self) -> None:
        """As in fairseq, with the plugin's optimizers for half precision."""
        with optimizers_for_half_precision():
            super()._build_optimizer()

    def load_checkpoint(
        self,
        filename: str,
        reset_optimizer: bool = False,
        reset_lr_scheduler: bool = False,
        *rest: Any,
        **options: Any,
    ) -> Any:
        """Loads ``filename``, or the run's newest whole one if it is the last one."""
        saving = self.cfg.checkpoint
        base = saving.finetune_from_model
        if Path(filename).resolve() == (self._folder / "checkpoint_last.pt").resolve():
            good = ""
            if self.data_parallel_rank == 0:
                good = str(resumed_from(Path(filename), saving))
            if self.data_parallel_world_size > 1:
                good = distributed_utils.broadcast_object(
                    good, 0, self.data_parallel_process_group, dist_device=self.device
                )
            filename = good
        with explained(filename, self), average_from_weights(self, filename):
            if self.data_parallel_rank == 0:
                check_base(filename, self.cfg, self.task)
            load_task_state(filename, self.task)
            extra_state = super().load_checkpoint(
                filename, reset_optimizer, reset_lr_scheduler, *rest, **options
            )
            if extra_state is not None:
                self._frozen = restore_master_weights(self, filename)
        if extra_state is not None:
            if not (saving.reset_dataloader or filename == base):
                self._position.restored = extra_state.get("train_iterator", {})
            if not (reset_optimizer or reset_lr_scheduler):
                plateau.restore(self.lr_scheduler, extra_state)
            if not (reset_optimizer or options.get("reset_meters")):
                continues = continues_itself(filename, saving)
                metric = saving.best_checkpoint_metric
                early_stopping.restore(extra_state, metric, continues)
                if continues and has_same_loss(filename, self.cfg):
                    self._divergence.load_state_dict(extra_state.get("divergence", {}))
        return extra_state

    def save_checkpoint(self, filename: str, extra_state: dict[str, Any]) -> Any:
        """As in fairseq, with the state of what fairseq does not save."""
        more = {
            "early_stopping": early_stopping.counts(self.cfg.checkpoint.best_checkpoint_metric),
            "divergence": self._divergence.state_dict(),
            "num_bad_epochs": plateau.num_bad_epochs(self.lr_scheduler),
            "save_dir": str(self._folder.resolve()),
        }
        if "train_iterator" in extra_state:
            more["train_iterator"] = extra_state["train_iterator"] | self._position.state()
        return super().save_checkpoint(filename, extra_state | more)

    def state_dict(self) -> dict[str, Any]:
        """The contents of a checkpoint, with float32 weights if the optimizer has them."""
        state = super().state_dict()
        if masters := master_weights(self.optimizer):
            state["model"] = self._full_state()
            if state["criterion"] is not None:
                state["criterion"] = full_state(self.get_criterion(), masters, {})
        return state

    def _full_state(self) -> dict[str, Any]:
        model, masters = self.get_model(), master_weights(self.optimizer)
        return full_state(model, masters, self._frozen) if masters else model.state_dict()

    def get_train_iterator(self, epoch: int, *rest: Any, **options: Any) -> Any:
        """As in fairseq; the first call logs how many tokens an update holds."""
        batches = super().get_train_iterator(epoch, *rest, **options)
        self._position.begin(len(getattr(batches, "frozen_batches", ())))
        self._time_left.batches_per_epoch = len(batches)
        if not self._logged_update_size and self.data_parallel_rank == 0:
            self._logged_update_size = True
            frequencies = self.cfg.optimization.update_freq
            per_update = self.data_parallel_world_size * frequencies[:epoch][-1]
            log_mean_update(self.get_model(), batches, per_update, str(self.cfg.model._name))
        return batches

    def clip_grad_norm(self, clip_norm: float) -> Tensor:
        """Clips the gradient and returns its norm.

        Raises:
            NonFiniteGradientError: the norm is NaN or infinite, and not because of a loss scale.
        """
        norm = super().clip_grad_norm(clip_norm)
        if not self.cfg.common.amp and not torch.isfinite(norm).all():
            raise NonFiniteGradientError
        return norm

    def _prepare_sample(self, sample: Any, is_dummy: bool = False) -> tuple[Any, bool]:
        """As in fairseq, and prepares what depends on the lengths of the sentences."""
        prepared, was_dummy = super()._prepare_sample(sample, is_dummy)
        if self.cuda and sample:
            prepare_lengths(self.get_model(), self.get_criterion(), prepared, sample)
        return prepared, was_dummy

    def train_step(self, samples: list[dict[str, Any]], raise_oom: bool = False) -> Any:
        """Makes an update, or skips it if its gradient is NaN or infinite.

        Raises:
            SystemExit: too many updates were skipped, or training has diverged.
        """
        update = self.update = self.get_num_updates() + 1
        # fairseq does not count the sentences of a process whose last batch is empty.
        samples = [sample for sample in samples if sample] or samples[:1]
        raise_oom |= self.data_parallel_world_size > 1  # fairseq would go on with wrong gradients
        try:
            log = super().train_step(samples, raise_oom)
        except NonFiniteGradientError:
            self.zero_grad()
            losses = batch_losses(samples, self._loss)
            self._faults.add(update, self.data_parallel_rank, losses, self.device)
            return None
        except FloatingPointError as error:
            if "Minimum loss scale" not in str(error):
                raise
            self._diverged(str(error), update - 1)
        if self._first_update_on_cpu:  # now the optimizer has its state
            self._first_update_on_cpu = not disable_trimming()
        hours = self._time_left.hours(self.get_num_updates(), self.cumulative_training_time())
        if hours is not None:
            metrics.log_scalar("hours_left", hours, weight=0, priority=795, round=2)
        if log is not None and self._divergence.has_diverged(update, float(log["loss"])):
            since = self._divergence.last_good_update
            self._diverged(f"the loss has been rising since update {since}", since)
        return log

    def begin_epoch(self, epoch: int) -> None:
        """Begins an epoch, if its checkpoints will load, and unless training was complete before
        this process started."""
        if limit := reached_limit(self):
            logger.info("nothing to train: %s", limit)
            raise SystemExit(0)
        check_loads(self)
        super().begin_epoch(epoch)

    @torch.no_grad()
    def _loss(self, sample: dict[str, Any]) -> Tensor:
        sample, _is_dummy = self._prepare_sample(sample)
        loss, _sample_size, _log = self.get_criterion()(self.get_model().eval(), sample)
        return loss

    def _diverged(self, why: str, good_update: int) -> NoReturn:
        common = self.cfg.common
        wider = wider_precision(common.fp16 or common.amp, common.bf16)
        advice = (
            f"update {self.get_num_updates()}: training has diverged: {why}. Lower --lr or raise"
            " --warmup-updates"
        )
        if _option(self.task, "on_divergence") == "stop" or wider is None:
            wide = f", or train in {wider} (--on-divergence rollback)" if wider else ""
            good = f". Checkpoints up to update {good_update} are good" if good_update else ""
            raise SystemExit(f"{advice}{wide}{good}")
        if self.data_parallel_world_size > 1:
            raise SystemExit(f"{advice}. Run again in {wider} on all processes")
        logger.warning(advice)
        try:
            check_resumes(self.cfg.checkpoint)
            optimizer = optimizer_class(wider, self.cfg.optimizer._name)
            roll_back(self._folder, good_update, wider, optimizer, self._shapes())
        except ValueError as error:
            raise SystemExit(f"{advice}. No rollback: {error}") from None

    def _shapes(self) -> list[torch.Size]:
        both = chain(self.get_model().parameters(), self.get_criterion().parameters())
        return [p.shape for p in both if p.requires_grad]


def _option(task: Any, name: str) -> Any:
    """An option of the plugin's task; its default if the task is fairseq's."""
    return getattr(task.cfg, name, getattr(VaswaniTranslationConfig, name))
