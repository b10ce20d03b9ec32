"""The type in which a processor multiplies matrices of bf16 fastest."""

from __future__ import annotations

import functools
import time

import torch
from torch import Tensor

_SIZE = 512  # of the square matrices that are tried; as wide as those of the base model
_ROUNDS = 5  # the fastest counts: other work on the machine slows some of them
_ENOUGH = 0.1  # seconds, of one type: what has no instructions for bf16 takes 0.2 for one product


def product_type(matrix: Tensor) -> torch.dtype:
    """What to convert such a matrix to before it is multiplied: its own type, or float32.

    A processor without instructions for bf16 multiplies it more slowly than float32, and so do
    some that have them (Intel's AVX-512 BF16 where AMX is hidden: 0.6 times as fast).
    """
    if matrix.dtype == torch.bfloat16 and matrix.device.type == "cpu" and not _is_bf16_faster():
        return torch.float32
    return matrix.dtype


@functools.cache
def _is_bf16_faster() -> bool:
    """Whether this processor multiplies bf16 faster than float32, by trying both."""
    return _seconds(torch.bfloat16) < _seconds(torch.float32)


def _seconds(dtype: torch.dtype) -> float:
    """The fastest of some products, of fewer where they take long."""
    left, right = torch.ones(2, _SIZE, _SIZE, dtype=dtype)
    seconds: list[float] = []
    while len(seconds) < _ROUNDS and sum(seconds) < _ENOUGH:
        seconds.append(_seconds_of_one(left, right))
    return min(seconds)


def _seconds_of_one(left: Tensor, right: Tensor) -> float:
    started = time.perf_counter()
    torch.mm(left, right)
    return time.perf_counter() - started
