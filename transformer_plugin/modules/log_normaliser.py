"""log sum exp over the vocabulary, in the passes that torch is quick at."""

from __future__ import annotations

import torch
from torch import Tensor


def log_normaliser(logits: Tensor) -> Tensor:
    """log Z of each row, so that logits - log Z are log-probabilities; float32 or wider.

    From one softmax: log Z = x - log p(x) for the likeliest class.

    Args:
        logits: ``[..., V]``.

    Returns:
        ``[..., 1]``.
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    top = logits.amax(dim=-1, keepdim=True).to(wide)
    return top - largest_probability(logits.softmax(dim=-1)).to(wide).log()


def largest_probability(p: Tensor) -> Tensor:
    """The largest of each row of probabilities ``[..., V]``, ``[..., 1]``."""
    if p.dtype == torch.bfloat16 and not p.is_cuda:
        # Numbers that are not negative are ordered as their bits are, and torch is quick on those.
        return p.view(torch.int16).amax(dim=-1, keepdim=True).view(torch.bfloat16)
    return p.amax(dim=-1, keepdim=True)
