"""The likeliest next tokens of each hypothesis, without a pass over all log-probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 64  # classes whose maximum stands for them in the first round


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
    whole = classes // _BLOCK * _BLOCK
    blocks = whole // _BLOCK
    if logits.is_cuda or blocks <= 2 * k:
        return logits.topk(k, dim=1)
    in_blocks = logits[:, :whole].unflatten(1, (blocks, _BLOCK))
    chosen = in_blocks.amax(dim=2).topk(k, dim=1, sorted=False).indices  # [R, k]
    index = (chosen.unsqueeze(2) * _BLOCK + torch.arange(_BLOCK, device=logits.device)).flatten(1)
    if whole < classes:
        rest = torch.arange(whole, classes, device=logits.device).expand(rows, -1)
        index = torch.cat([index, rest], dim=1)
    values, place = logits.gather(1, index).topk(k, dim=1)
    return values, index.gather(1, place)
