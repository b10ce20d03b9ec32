"""The smoothed loss of rows of logits in one call, each row while it is in the inner cache."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int64

import torch
from torch import Tensor

from .library import is_supported, run


class _RowLosses(ctypes.Structure):
    """``struct RowLosses``."""

    _fields_ = [
        ("rows", c_int64), ("classes", c_int64), ("share", c_float), ("gold_share", c_float)
    ]  # fmt: skip


def supports(logits: Tensor, target: Tensor) -> bool:
    """Whether ``replace_by_gradient`` can be called."""
    return (
        is_supported(logits)
        and logits.is_contiguous()
        and (target.dtype, target.device) == (torch.int64, logits.device)
        and target.shape == logits.shape[:1] != (0,)
        and all(gold in range(logits.size(1)) for gold in map(int, target.aminmax()))
    )


def replace_by_gradient(
    logits: Tensor, target: Tensor, share: float, gold_share: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Replaces ``logits``, ``[n, V]``, by the gradient of the sum of their losses.

    Args:
        target: gold classes, ``[n]``.
        share: probability of each class in the smoothed target.
        gold_share: additional probability of the gold class.

    Returns:
        Three tensors ``[n]``: the smoothed and the plain loss, in nats, and whether the gold class
        is among the likeliest.
    """
    loss, nll = logits.new_empty(2, logits.size(0), dtype=torch.float32)
    correct = torch.empty_like(target, dtype=torch.bool)
    numbers = _RowLosses(*logits.shape, share, gold_share)
    run("row_losses", logits.dtype, numbers, [logits, target.contiguous(), loss, nll, correct])
    return loss, nll, correct
