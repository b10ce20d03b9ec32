"""The likeliest next tokens of each hypothesis, without a pass over all log-probabilities."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LANES = 16  # numbers that a CPU compares at once


def largest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, largest first, as ``torch.topk`` finds them, but in two rounds.

    The k largest classes lie in the k blocks of the largest maxima, so only those are searched.

    Args:
        logits: ``[R, V]``.
        k: how many; at most V.

    Returns:
        Values and classes, ``[R, k]``.
    """
    rows, classes = logits.shape
    blocks = int(math.sqrt(k * classes)) // _LANES * _LANES  # as much work in either round
    if logits.is_cuda or blocks <= 2 * k:
        return logits.topk(k, dim=1)
    block = classes // blocks  # classes, spread evenly, whose maximum stands for them
    whole = block * blocks
    maxima = logits[:, :whole].unflatten(1, (block, blocks)).amax(dim=1)  # [R, blocks]
    chosen = maxima.topk(k, dim=1, sorted=False).indices
    index = (chosen.unsqueeze(2) + torch.arange(0, whole, blocks, device=logits.device)).flatten(1)
    if whole < classes:
        rest = torch.arange(whole, classes, device=logits.device).expand(rows, -1)
        index = torch.cat([index, rest], dim=1)
    values, place = logits.gather(1, index).topk(k, dim=1)
    return values, index.gather(1, place)
