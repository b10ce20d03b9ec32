"""Updates from gradients in half precision, of which no float32 copy is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from fairseq import utils
from fairseq.optim.fp16_optimizer import FP16Optimizer as FairseqFP16Optimizer
from torch import Tensor, nn
from torch.optim.adamw import adamw

from .adam import FusedAdam, VaswaniAdam
from .modules import compiled_adam
from .modules.compiled_adam import Adam
from .modules.split_weight import SplitWeight


class FP16Optimizer(FairseqFP16Optimizer):
    """fairseq's for ``--bf16``, with float32 weights and moments behind the rounded weights; it
    keeps the name, by which a checkpoint says whose state it holds.

    fairseq also keeps a float32 copy of the gradient, and passes over it six times an update.
    Here it is converted and scaled where it is used: on a CPU number by number. There a float32
    weight is also kept as no more than what its rounding lacks.
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
        if all(map(compiled_adam.is_supported, params)):
            return list(map(SplitWeight, params))
        masters = super().build_fp32_params(args, params, flatten)
        for master in masters:
            master.grad = None
        return masters

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
        """The norm of the gradient, in float32, which ``step`` then scales to at most
        ``max_norm``, where that is above 0."""
        norm = self._multiply_factor * gradient_norm(self.fp16_params, aggregate_norm_fn)
        if max_norm > 0:
            self._multiply_factor = self._multiply_factor * (max_norm / (norm + 1e-6)).clamp(max=1)
        return norm

    @torch.no_grad()
    def step(self, closure: Any = None, groups: Any = None) -> None:
        """One update of the float32 weights, and of the rounded ones after them."""
        assert isinstance(self.fp32_optimizer, VaswaniAdam)
        rounded = dict(zip(self.fp32_params, self.fp16_params, strict=True))
        for group in self.optimizer.param_groups:
            update(self.optimizer, group, rounded, self._multiply_factor)
        self._multiply_factor = 1.0

    def zero_grad(self) -> None:
        """Clears the gradients, and what they were to be scaled by."""
        super().zero_grad()
        self._multiply_factor = 1.0


def gradient_norm(
    parameters: list[nn.Parameter], aggregate: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """Euclidean norm of all gradients, in float32.

    Args:
        aggregate: makes it that of all processes.
    """
    gradients = [p.grad.detach() for p in parameters if p.grad is not None]
    if not gradients or not all(map(compiled_adam.is_supported, gradients)):
        norm: Tensor = utils.clip_grad_norm_(parameters, 0, aggregate)
        return norm
    norm = torch.cat([compiled_adam.square_sums(g) for g in gradients]).sum().sqrt()
    return norm if aggregate is None else aggregate(norm)


def update(
    adam: FusedAdam,
    group: dict[str, Any],
    rounded: dict[nn.Parameter, nn.Parameter],
    factor: float | Tensor,
) -> None:
    """One update of a group of parameters by the gradients of their rounded copies, which follow.

    Args:
        adam: whose parameters and state they are.
        rounded: the copy of each parameter, with its gradient; none stands for zeros.
        factor: what the gradients are multiplied with.
    """
    epsilon = adam.next_epsilon(group)
    weights: list[nn.Parameter] = group["params"]
    copies = [rounded[weight] for weight in weights]
    gradients = [_gradient(copy) for copy in copies]
    states = [_state(adam, weight) for weight in weights]
    steps, means, squares = (
        [state[name] for state in states] for name in ("step", "exp_avg", "exp_avg_sq")
    )
    if all(isinstance(weight, SplitWeight) for weight in weights):
        numbers = _numbers(group, int(steps[0]) + 1, epsilon, float(factor))
        for each in zip(gradients, weights, means, squares, strict=True):
            compiled_adam.update(numbers, *each)
        torch._foreach_add_(steps, 1)
        return
    exact = [torch.empty_like(weight) for weight in weights]
    torch._foreach_copy_(exact, gradients)
    torch._foreach_mul_(exact, factor)
    adamw(
        *(weights, exact, means, squares, [], steps),
        fused=True,
        amsgrad=False,
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        lr=group["lr"],
        weight_decay=group["weight_decay"],
        eps=epsilon,
        maximize=False,
    )
    torch._foreach_copy_(copies, weights)


def _numbers(group: dict[str, Any], step: int, epsilon: float, factor: float) -> Adam:
    """torch's formula, for the kernel."""
    beta1, beta2 = group["betas"]
    return Adam(
        *(factor, beta1, beta2),
        group["lr"] / (1 - beta1**step),
        1 / math.sqrt(1 - beta2**step),
        *(epsilon, 1 - group["lr"] * group["weight_decay"]),
    )


def _state(adam: FusedAdam, parameter: nn.Parameter) -> dict[str, Tensor]:
    """As torch's AdamW has it."""
    state = adam.state[parameter]
    if not state:
        state["step"] = torch.zeros((), device=parameter.device)
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)
    return state


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Its gradient as the kernel reads it, zeros where it has none."""
    found = parameter.grad
    return torch.zeros_like(parameter) if found is None else found.detach().contiguous()
