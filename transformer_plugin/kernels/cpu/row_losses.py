"""The losses of rows of logits, and the gradient of their sum."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int64
from typing import NamedTuple

import torch
from torch import Tensor

from . import library


class RowLosses(NamedTuple):
    """Of each row, ``[R]``; float32 or wider.

    Attributes:
        nll: -log p of its gold class, in nats.
        log_z: log of the sum of e to the power of its logits.
        is_likeliest: whether no class is likelier than the gold one.
    """

    nll: Tensor
    log_z: Tensor
    is_likeliest: Tensor


def is_in_place(logits: Tensor) -> bool:
    """Whether the gradient may take the place of these logits."""
    return library.is_supported(logits)


def row_losses(logits: Tensor, gold: Tensor, gold_share: float, gradient: Tensor) -> RowLosses:
    """The losses; ``gradient`` becomes softmax(logits), less ``gold_share`` at the gold class.

    Args:
        logits: ``[R, V]``, contiguous.
        gold: classes, ``[R]``.
        gradient: ``[R, V]``, contiguous; ``logits`` itself where ``is_in_place``.
    """
    return (_by_kernel if is_in_place(logits) else by_torch)(logits, gold, gold_share, gradient)


class _Rows(ctypes.Structure):
    """``struct Rows``."""

    _fields_ = [*((name, c_int64) for name in ("count", "classes")), ("gold_share", c_float)]


def _by_kernel(logits: Tensor, gold: Tensor, gold_share: float, gradient: Tensor) -> RowLosses:
    count, classes = logits.shape
    found = RowLosses(
        torch.empty(count, dtype=torch.float32),
        torch.empty(count, dtype=torch.float32),
        torch.empty(count, dtype=torch.bool),
    )
    tensors = (logits, gold.contiguous(), gradient, *found)
    library.run("row_losses", logits.dtype, _Rows(count, classes, gold_share), tensors)
    return found


def by_torch(logits: Tensor, gold: Tensor, gold_share: float, gradient: Tensor) -> RowLosses:
    """As ``row_losses``, by the likeliest class: its probability never underflows, so that a
    GPU's host has nothing to wait for."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    p = torch.softmax(logits, dim=1, out=gradient)
    top_p, top = p.max(dim=1)
    log_z = logits.gather(1, top.unsqueeze(1)).squeeze(1).to(wide) - top_p.to(wide).log()
    gold_logits = logits.gather(1, gold.unsqueeze(1)).squeeze(1).to(wide)
    p[torch.arange(gold.size(0), device=gold.device), gold] -= gold_share  # scatter_add_ copies p
    return RowLosses(log_z - gold_logits, log_z, top == gold)
