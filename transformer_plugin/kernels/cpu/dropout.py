"""Dropout with cheap random numbers on a CPU. Without this kernel a training step takes 1.08 times
as long in bf16 (``bench/kernels.py``)."""

from __future__ import annotations

import torch
from torch import Tensor

from ...modules.dropout import dropout
from ..registry import kernel

LANE_VALUES = 1 << 16  # a 64-bit random number decides four elements


def _supports(x: Tensor, rate: float) -> bool:
    return x.device.type == "cpu" and 0 < rate < 1 and not torch.compiler.is_compiling()


@kernel(dropout, _supports)
def cheap_dropout(x: Tensor, rate: float) -> Tensor:
    """See ``dropout``.

    Deviation: ``rate`` is rounded to a multiple of 1 / 65,536.
    """
    return x * kept(x, rate).mul_(1 / (1 - rate))


def kept(like: Tensor, rate: float) -> Tensor:
    """A mask like ``like``: 0 with probability ``rate``, else 1."""
    words = torch.empty((like.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    lanes = words.view(torch.int16)[: like.numel()].view(like.shape)
    mask = torch.empty(like.shape, dtype=like.dtype)
    return torch.ge(lanes, round(rate * LANE_VALUES) - LANE_VALUES // 2, out=mask)
