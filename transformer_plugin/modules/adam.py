"""Adam, section 5.3 of the paper, for weights in float32 and for rounded ones."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from .operation import operation


class FusedAdam(torch.optim.AdamW):
    """torch's fused step with Kingma and Ba's epsilon-hat, as tensor2tensor and fairseq have it.

    There the update is lr sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps), while torch
    adds eps to the bias-corrected sqrt(v / (1 - beta2^t)). A step with
    eps / sqrt(1 - beta2^t) in torch's formula is the same update. Weight decay is decoupled.
    """

    # torch's own import its compiler, so as to be left out by it: more than a second, and 80 MiB.
    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    _step = inspect.unwrap(torch.optim.AdamW.step)

    def __init__(self, params: Iterable[Any], **numbers: Any) -> None:
        super().__init__(params, fused=True, **numbers)

    supports_memory_efficient_fp16 = False
    supports_flat_params = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes up a state, fairseq's too, and stays fused."""
        for group in state["param_groups"]:
            group["fused"] = True
        super().__setstate__(state)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter."""
        epsilons = [group["eps"] for group in self.param_groups]
        for group in self.param_groups:
            group["eps"] = self.next_epsilon(group)
        try:
            return self._step(closure)
        finally:
            for group, eps in zip(self.param_groups, epsilons, strict=True):
                group["eps"] = eps

    def next_epsilon(self, group: dict[str, Any]) -> float:
        """What torch's formula takes for the next update of the group, which is counted."""
        steps = group.setdefault("updates", self._finished_updates(group))
        group["updates"] = steps + 1
        return group["eps"] / math.sqrt(1 - group["betas"][1] ** (steps + 1))

    def _finished_updates(self, group: dict[str, Any]) -> int:
        """How often the group was updated before, by its state; 0 where it has none."""
        steps = (self.state[p]["step"] for p in group["params"] if self.state.get(p))
        return max((int(step) for step in steps), default=0)


@operation
def gradient_norm(gradients: list[Tensor]) -> Tensor:
    """Euclidean norm of all of them together, float32."""
    norms = [torch.linalg.vector_norm(g, dtype=torch.float32) for g in gradients]
    return torch.linalg.vector_norm(torch.stack(norms))


@operation
def mixed_precision_update(
    adam: FusedAdam,
    group: dict[str, Any],
    rounded: dict[nn.Parameter, nn.Parameter],
    factor: float | Tensor,
) -> None:
    """One update of a group of float32 weights by the gradients of their rounded copies, which
    then follow.

    Args:
        adam: whose weights and state they are.
        rounded: the copy of each weight, with its gradient; none stands for zeros.
        factor: what the gradients are multiplied with.
    """
    epsilon = adam.next_epsilon(group)
    weights: list[Tensor] = group["params"]
    copies: list[Tensor] = [rounded[weight] for weight in group["params"]]
    states = [state_of(adam, weight) for weight in weights]
    steps, means, squares = (
        [state[name] for state in states] for name in ("step", "exp_avg", "exp_avg_sq")
    )
    exact = [torch.empty_like(weight) for weight in weights]
    torch._foreach_copy_(exact, [gradient_of(copy) for copy in copies])
    torch._foreach_mul_(exact, factor)
    adamw(
        weights,
        exact,
        means,
        squares,
        [],
        steps,
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


def state_of(adam: FusedAdam, parameter: Tensor) -> dict[str, Tensor]:
    """Its step and moments, as torch's AdamW has them."""
    state = adam.state[parameter]
    if not state:
        state["step"] = torch.zeros((), device=parameter.device)
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)
    return state


def gradient_of(parameter: Tensor) -> Tensor:
    """Its gradient, zeros where it has none."""
    found = parameter.grad
    return torch.zeros_like(parameter) if found is None else found.detach().contiguous()
