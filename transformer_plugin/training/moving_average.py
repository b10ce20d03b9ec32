"""``--store-ema`` for tied weights, which fairseq would decay once for each of their names."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fairseq.models.ema.ema import EMA
from fairseq.trainer import Trainer
from torch import nn

from ..checkpoints.safe_loading import load_header

logger = logging.getLogger(__name__)


class TiedEMA(EMA):
    """fairseq's exponential moving average, with one update for a tensor of several names.

    Args:
        full_state: returns the model's state with float32 weights; default: ``model.state_dict``.
    """

    def __init__(
        self,
        model: nn.Module,
        config: Any,
        device: Any = None,
        full_state: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(model, config, device)
        self.full_state = full_state or model.state_dict

    def step(self, new_model: nn.Module, updates: int | None = None) -> None:
        """As in fairseq, at every multiple of ``--ema-update-freq``. fairseq counts the updates of
        a process, so a resumed run would have another average."""
        if updates is not None and self.config.ema_update_freq > 1:
            self.update_freq_counter = (updates - 1) % self.config.ema_update_freq
        super().step(new_model, updates)

    def _step_internal(self, new_model: nn.Module, updates: int | None = None) -> None:
        state = self.full_state()
        names: dict[Any, str] = {}
        first = {
            name: names.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), name)
            for name, tensor in state.items()
        }
        once = {name: state[name] for name in names.values()}
        super()._step_internal(SimpleNamespace(state_dict=lambda: once), updates)
        for name in first.keys() & self.fp32_params.keys():
            self.fp32_params[name] = self.fp32_params[first[name]]


@contextlib.contextmanager
def average_from_weights(trainer: Trainer, filename: str) -> Iterator[None]:
    """Context in which a checkpoint is loaded. If it holds no moving average, one starts from its
    weights. fairseq intends the same, but reads the weights after it has deleted them."""
    settings, path = trainer.cfg.ema, Path(filename)
    if not settings.store_ema or not path.is_file() or "ema" in load_header(path)["extra_state"]:
        yield
        return
    settings.store_ema = False
    try:
        yield
    finally:
        settings.store_ema = True
    logger.info("%s holds no moving average: --store-ema starts from its weights", filename)
    trainer.ema.restore(trainer.ema.full_state(), build_fp32_params=settings.ema_fp32)
