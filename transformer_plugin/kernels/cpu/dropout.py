"""Dropout with cheap random numbers on a CPU. Without this kernel a training step takes 1.08 times
as long in bf16 (``bench/kernels.py``)."""

from __future__ import annotations

from ctypes import c_int64

import torch
from torch import Tensor

from ...modules.dropout import dropout
from ..registry import kernel
from .library import SUFFIXES, address, is_supported, kernels

DRAWS = 1 << 16  # a 64-bit random number decides four elements


def _supports(x: Tensor, rate: float) -> bool:
    return 0 < rate < 1 and is_supported(x)


@kernel(dropout, _supports)
def cheap_dropout(x: Tensor, rate: float) -> Tensor:
    """See ``dropout``.

    Deviation: ``rate`` is rounded to a multiple of 1 / 65,536.
    """
    return x * _mask(x, rate)


def _mask(like: Tensor, rate: float) -> Tensor:
    """A mask like ``like``: 0 with probability ``rate``, else 1 / (1 - rate)."""
    mask = torch.empty(like.shape, dtype=like.dtype)
    kept = torch.tensor(1 / (1 - rate), dtype=like.dtype)
    seed = int(torch.empty((), dtype=torch.int64).random_(-(2**63), None))
    draw = getattr(kernels(), f"draw_mask_{SUFFIXES[like.dtype]}")
    numbers = like.numel(), seed, round(rate * DRAWS)
    draw(*map(c_int64, numbers), address(kept), address(mask))
    return mask
