"""Adam, section 5.3 of the paper."""

from __future__ import annotations

import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .operation import operation

_HALF_PRECISION = (torch.float16, torch.bfloat16)
_PART = 1 << 20  # elements of a gradient that torch copies to float32 at a time, for the norm


class AdamTensors(NamedTuple):
    """A weight and its optimizer state; all tensors have the weight's shape.

    Attributes:
        weight: float32 or wider.
        gradient: may have another type.
        mean, square: the moments m and v, of the weight's type.
        rounded: the half-precision copy that the model computes with; None = the weight itself.
    """

    weight: Tensor
    gradient: Tensor
    mean: Tensor
    square: Tensor
    rounded: Tensor | None = None


class AdamOptions(NamedTuple):
    """Hyperparameters of an update, shared by all weights.

    Attributes:
        step: number of this update, t, from 1.
        lr: learning rate.
        beta1, beta2: decay of the moments.
        eps: added to the square root of the second moment.
        weight_decay: decoupled weight decay, multiplied by lr.
        factor: multiplies the gradients first.
    """

    step: int
    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float = 0.0
    factor: float | Tensor = 1.0


@operation
def adam_update(parameters: list[AdamTensors], options: AdamOptions) -> None:
    """Updates each weight in place, and then its rounded copy.

    Kingma and Ba, *Adam* (2015), in the order of computation at the end of section 2: epsilon is
    added to sqrt(v) before the bias correction. tensor2tensor and fairseq do the same; torch
    corrects the bias first.
    """
    step, lr, beta1, beta2, eps, weight_decay, factor = options
    step_size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    for w, gradient, m, v, rounded in parameters:
        g = gradient.to(w.dtype) * factor
        m.mul_(beta1).add_(g, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        w.mul_(1 - lr * weight_decay)
        w.addcdiv_(m, v.sqrt().add_(eps), value=-step_size)
        if rounded is not None:
            rounded.copy_(w)


class Adam(torch.optim.Optimizer):
    """``adam_update`` of all parameters, with gradients in float32 or half precision. A weight in
    half precision is updated in float32, and rounded.

    It has the state of fairseq's Adam: ``step``, ``exp_avg`` (m) and ``exp_avg_sq`` (v).

    Args:
        params: parameters, or groups of them.
        lr, betas, eps, weight_decay: see ``AdamOptions``.
    """

    # Without the decorators that import torch's compiler, which takes 1 s and 80 MiB.
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-9,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """See torch's, which rounds the moments to the type of the weights; this does not."""
        inspect.unwrap(torch.optim.Optimizer.load_state_dict)(self, state_dict)
        weights, numbers = (
            [each for group in groups for each in group["params"]]
            for groups in (self.param_groups, state_dict["param_groups"])
        )
        for weight, number in zip(weights, numbers, strict=True):
            for name, value in state_dict["state"].get(number, {}).items():
                if name in ("exp_avg", "exp_avg_sq") and weight.dtype != _wide(weight):
                    self.state[weight][name] = value.to(weight.device, _wide(weight))

    @torch.no_grad()
    def step(
        self,
        closure: Callable[[], Any] | None = None,
        rounded: Mapping[Tensor, Tensor] | None = None,
        factor: float | Tensor = 1.0,
    ) -> Any:
        """One update.

        Args:
            closure: computes the gradients and returns the loss, which ``step`` returns.
            rounded: maps each weight to its half-precision copy, which has the gradient; a missing
                gradient counts as zeros. Without copies, weights without a gradient are skipped.
            factor: multiplies the gradients first.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            rest = (group["lr"], *group["betas"], group["eps"], group["weight_decay"], factor)
            by_step: dict[int, list[AdamTensors]] = defaultdict(list)
            for weight in group["params"]:
                copy = None if rounded is None else rounded[weight]
                gradient = weight.grad if copy is None else _gradient(copy)
                if gradient is None:
                    continue
                state = self._state(weight)
                state["step"] = int(state["step"]) + 1
                moments = state["exp_avg"], state["exp_avg_sq"]
                if weight.dtype in _HALF_PRECISION:  # one at a time, to save memory
                    tensors = AdamTensors(weight.float(), gradient, *moments, weight)
                    adam_update([tensors], AdamOptions(state["step"], *rest))
                else:
                    by_step[state["step"]].append(AdamTensors(weight, gradient, *moments, copy))
            for step, tensors_of_step in by_step.items():
                adam_update(tensors_of_step, AdamOptions(step, *rest))
        return loss

    def _state(self, weight: Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[weight]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(weight, dtype=_wide(weight))
            state["exp_avg_sq"] = torch.zeros_like(weight, dtype=_wide(weight))
        return state


def _wide(weight: Tensor) -> torch.dtype:
    """The type in which a weight is updated."""
    return torch.promote_types(weight.dtype, torch.float32)


def _gradient(parameter: Tensor) -> Tensor:
    """The gradient of a parameter; zeros if it has none."""
    found = parameter.grad
    return torch.zeros_like(parameter) if found is None else found.detach()


def gradient_norm(gradients: list[Tensor]) -> Tensor:
    """The Euclidean norm of all gradients together, float32."""
    parts: list[Tensor] = []
    for gradient in gradients:
        parts += gradient.flatten().split(_PART) if gradient.numel() > _PART else [gradient]
    norms = torch._foreach_norm(parts, dtype=torch.float32)
    return torch.linalg.vector_norm(torch.stack(norms))
