"""Adam's update from gradients in bf16 on a CPU, in one pass."""

from __future__ import annotations

import ctypes
import math
from ctypes import byref, c_float, c_int64
from typing import Any

import torch
from torch import Tensor, nn

from ...modules.adam import (
    FusedAdam,
    gradient_norm,
    gradient_of,
    mixed_precision_update,
    state_of,
)
from ..registry import kernel
from . import library
from .library import address, kernels, threads

_PIECE = 1 << 13  # kPiece


class _Adam(ctypes.Structure):
    """``struct Adam``: the numbers of an update, the t-th.

    Attributes:
        factor: what the gradient is multiplied with.
        beta1, beta2: the decays of the moments.
        rate: lr / (1 - beta1^t).
        correction: 1 / sqrt(1 - beta2^t).
        epsilon: added to the root of the second moment, corrected.
        kept: what a weight is multiplied with before, for weight decay.
    """

    _fields_ = [
        (name, c_float)
        for name in ("factor", "beta1", "beta2", "rate", "correction", "epsilon", "kept")
    ]


def _is_readable(numbers: Tensor) -> bool:
    wanted = numbers.dtype == torch.bfloat16 and numbers.is_contiguous()
    return wanted and library.is_supported(numbers)


def _all_readable(gradients: list[Tensor]) -> bool:
    return bool(gradients) and all(map(_is_readable, gradients))


@kernel(gradient_norm, _all_readable)
def norm_in_one_pass(gradients: list[Tensor]) -> Tensor:
    """See ``gradient_norm``."""
    return torch.cat([_square_sums(gradient) for gradient in gradients]).sum().sqrt()


def _square_sums(gradient: Tensor) -> Tensor:
    """Sums of the squares of some numbers each, float32, which together are all."""
    sums = torch.empty(-(-gradient.numel() // _PIECE), dtype=torch.float32)
    kernels().square_sums(  # type: ignore[union-attr]
        *threads(), c_int64(gradient.numel()), address(gradient), address(sums)
    )
    return sums


def _supports(
    adam: FusedAdam,
    group: dict[str, Any],
    rounded: dict[nn.Parameter, nn.Parameter],
    factor: float | Tensor,
) -> bool:
    return all(
        _is_readable(rounded[weight])
        and weight.dtype == torch.float32
        and weight.is_contiguous()
        for weight in group["params"]
    )


@kernel(mixed_precision_update, _supports)
def update_in_one_pass(
    adam: FusedAdam,
    group: dict[str, Any],
    rounded: dict[nn.Parameter, nn.Parameter],
    factor: float | Tensor,
) -> None:
    """See ``mixed_precision_update``."""
    epsilon = adam.next_epsilon(group)
    weights: list[nn.Parameter] = group["params"]
    states = [state_of(adam, weight) for weight in weights]
    (beta1, beta2), step = group["betas"], int(states[0]["step"]) + 1
    numbers = _Adam(
        *(float(factor), beta1, beta2),
        group["lr"] / (1 - beta1**step),
        1 / math.sqrt(1 - beta2**step),
        *(epsilon, 1 - group["lr"] * group["weight_decay"]),
    )
    for weight, state in zip(weights, states, strict=True):
        copy = rounded[weight]
        tensors = (gradient_of(copy), weight, copy, state["exp_avg"], state["exp_avg_sq"])
        kernels().adam_update(  # type: ignore[union-attr]
            byref(numbers), *threads(), c_int64(weight.numel()), *map(address, tensors)
        )
    torch._foreach_add_([state["step"] for state in states], 1)
