"""``--store-ema`` for tied weights, which fairseq would decay once for each of their names."""

from __future__ import annotations

from typing import Any

from fairseq.models.ema.ema import EMA
from torch import Tensor, nn


class TiedEMA(EMA):
    """fairseq's exponential moving average, with one update for a tensor of several names."""

    def step(self, new_model: nn.Module, updates: int | None = None) -> None:
        """As in fairseq, at every multiple of ``--ema-update-freq``. fairseq counts the updates of
        a process, so a continued run would have another average."""
        if updates is not None and self.config.ema_update_freq > 1:
            self.update_freq_counter = (updates - 1) % self.config.ema_update_freq
        super().step(new_model, updates)

    def _step_internal(self, new_model: nn.Module, updates: int | None = None) -> None:
        state = new_model.state_dict()
        names: dict[Any, str] = {}
        first = {
            name: names.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), name)
            for name, tensor in state.items()
        }
        super()._step_internal(_State({name: state[name] for name in names.values()}), updates)
        for name in first.keys() & self.fp32_params.keys():
            self.fp32_params[name] = self.fp32_params[first[name]]


class _State:
    """The part of a model that fairseq's class needs."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors

    def state_dict(self) -> dict[str, Tensor]:
        """Tensors by name."""
        return self._tensors
