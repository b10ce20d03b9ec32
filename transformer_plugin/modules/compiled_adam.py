"""Adam's update from gradients in bf16 on a CPU, in one pass."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int64

import torch
from torch import Tensor

from . import compiled
from .compiled import address, kernels, threads
from .split_weight import SplitWeight

_PIECE = 1 << 13  # kPiece


class Adam(ctypes.Structure):
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


def is_supported(numbers: Tensor) -> bool:
    """Whether the kernels can read such gradients, and update such weights."""
    wanted = numbers.dtype == torch.bfloat16 and numbers.is_contiguous()
    return wanted and compiled.is_supported(numbers)


def square_sums(gradient: Tensor) -> Tensor:
    """Sums of the squares of some numbers each, float32, which together are all."""
    sums = torch.empty(-(-gradient.numel() // _PIECE))
    kernels().square_sums(  # type: ignore[union-attr]
        *threads(), c_int64(gradient.numel()), address(gradient), address(sums)
    )
    return sums


def update(
    adam: Adam, gradient: Tensor, weight: SplitWeight, mean: Tensor, square: Tensor
) -> None:
    """Updates float32 weights, whose rounding follows, and both moments; all contiguous."""
    tensors = (gradient, weight.rounded, weight.rest, mean, square)
    kernels().adam_update(  # type: ignore[union-attr]
        byref(adam), *threads(), c_int64(weight.numel()), *map(address, tensors)
    )
