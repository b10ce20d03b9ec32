"""Dropout whose random numbers cost little on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

LANE_VALUES = 1 << 16  # a 64-bit random number decides four elements


def kept(like: Tensor, rate: float) -> Tensor:
    """Ones, and zeros with probability ``rate``, of the shape and type of ``like``; on a CPU.

    Deviation: ``rate`` is rounded to a multiple of 1 / 65,536.
    """
    words = torch.empty((like.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    lanes = words.view(torch.int16)[: like.numel()].view(like.shape)
    mask = torch.empty(like.shape, dtype=like.dtype)
    return torch.ge(lanes, round(rate * LANE_VALUES) - LANE_VALUES // 2, out=mask)


def dropout(x: Tensor, rate: float) -> Tensor:
    """Zeros with probability ``rate``, the rest divided by 1 - rate."""
    if rate == 0.0:
        return x
    if x.is_cuda:
        return F.dropout(x, rate)
    return x * kept(x, rate).mul_(1 / (1 - rate))


def residual_dropout(x: Tensor, y: Tensor, rate: float) -> Tensor:
    """x + Dropout(y), section 5.4; of equal shape."""
    if rate == 0.0:
        return x + y
    if y.is_cuda:
        return x + F.dropout(y, rate)
    return torch.addcmul(x, y, kept(y, rate), value=1 / (1 - rate))
