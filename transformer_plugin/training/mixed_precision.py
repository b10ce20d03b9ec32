"""The mixed-precision optimizer for ``--bf16``: no float32 copy of the gradient is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fairseq import utils
from fairseq.optim.fp16_optimizer import FP16Optimizer as FairseqFP16Optimizer
from torch import Tensor, nn

from ..adam import VaswaniAdam
from ..modules.adam import gradient_norm, mixed_precision_update


class FP16Optimizer(FairseqFP16Optimizer):
    """fairseq's for ``--bf16``, with float32 weights and moments behind the rounded weights; it
    keeps the name, by which a checkpoint says whose state it holds.

    fairseq also keeps a float32 copy of the gradient, and passes over it six times an update.
    Here it is converted and scaled where it is used: on a CPU number by number.
    """

    @classmethod
    def build_optimizer(cls, cfg: Any, params: list[nn.Parameter], **kwargs: Any) -> Any:
        """Ours for ``vaswani_adam`` in bf16, else fairseq's: fp16 has its weights in one vector,
        and sharding a step of its own."""
        ours = (
            cfg.common.bf16
            and cfg.optimizer._name == "vaswani_adam"
            and cfg.distributed_training.zero_sharding == "none"
        )
        build = super().build_optimizer if ours else FairseqFP16Optimizer.build_optimizer
        return build(cfg, params, **kwargs)

    @classmethod
    def build_fp32_params(cls, args: Any, params: list[nn.Parameter], flatten: bool = True) -> Any:
        """The float32 weights, without gradients."""
        masters = super().build_fp32_params(args, params, flatten)
        for master in masters:
            master.grad = None
        return masters

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
        """The norm of the gradient, in float32, which ``step`` then scales to at most
        ``max_norm``, where that is above 0."""
        norm = self._multiply_factor * _norm(self.fp16_params, aggregate_norm_fn)
        if max_norm > 0:
            self._multiply_factor = self._multiply_factor * (max_norm / (norm + 1e-6)).clamp(max=1)
        return norm

    @torch.no_grad()
    def step(self, closure: Any = None, groups: Any = None) -> None:
        """One update of the float32 weights, and of the rounded ones after them."""
        assert isinstance(self.fp32_optimizer, VaswaniAdam)
        rounded = dict(zip(self.fp32_params, self.fp16_params, strict=True))
        for group in self.optimizer.param_groups:
            mixed_precision_update(self.optimizer, group, rounded, self._multiply_factor)
        self._multiply_factor = 1.0

    def zero_grad(self) -> None:
        """Clears the gradients, and what they were to be scaled by."""
        super().zero_grad()
        self._multiply_factor = 1.0


def _norm(
    parameters: list[nn.Parameter], aggregate: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """Of all gradients, in float32; ``aggregate`` makes it that of all processes."""
    gradients = [p.grad.detach() for p in parameters if p.grad is not None]
    if not gradients:
        norm: Tensor = utils.clip_grad_norm_(parameters, 0, aggregate)
        return norm
    norm = gradient_norm(gradients)
    return norm if aggregate is None else aggregate(norm)
