"""Attention with torch's fused kernels, for what no other kernel supports.

On a CPU without compiled kernels, a training step takes 1.03 times as long without it in fp32. In
bf16 it would take 0.97 times as long, so it is not used (``TRANSFORMER_PLUGIN_COMPILED=0``,
``bench/kernels.py --only fused_attention``). Its gain has not been measured on a GPU yet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from ..modules.attention import AttentionScore, attention
from ..modules.operation import is_exactly
from .registry import kernel

_HAS_SAFE_MASKS = torch.__version__ >= "2.5"  # 2.4 makes NaN of a query that sees no key


def _supports(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    score: AttentionScore,
    allowed: Tensor | None = None,
    rate: float = 0.0,
    need_weights: bool = False,
) -> bool:
    return (
        not need_weights
        and is_exactly(score, AttentionScore)
        and score.is_product
        and isinstance(score.scale, float)
        and q.dtype == k.dtype == v.dtype
        and (q.is_cuda or q.dtype != torch.bfloat16)
        # gradgradcheck needs float64; SDPA has no second derivative on a CPU.
        and not (q.dtype == torch.float64 and torch.is_grad_enabled())
        and (
            allowed is None
            or (_HAS_SAFE_MASKS and allowed.dim() > 1 and allowed.dtype in (torch.bool, q.dtype))
        )
    )


@kernel(attention, _supports, stands_for=[AttentionScore])
def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    score: AttentionScore,
    allowed: Tensor | None = None,
    rate: float = 0.0,
    need_weights: bool = False,
) -> tuple[Tensor, None]:
    """See ``attention``. Uses torch's SDPA."""
    dtype, q = q.dtype, score.transform(q)
    with _without_cudnn() if q.is_cuda else contextlib.nullcontext():
        context = F.scaled_dot_product_attention(
            q, k, v, allowed, dropout_p=rate, scale=score.scale
        )
    return context.to(dtype), None


@contextlib.contextmanager
def _without_cudnn() -> Iterator[None]:
    """Context in which SDPA does not use cuDNN. cuDNN makes a plan for each new shape, which takes
    55 to 440 ms according to PyTorch's issues; a search has a new shape every few steps."""
    if not torch.backends.cuda.cudnn_sdp_enabled():
        yield
        return
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)
