"""FlashAttention over packed rows on a GPU: padding is neither made nor passed over."""

from __future__ import annotations

import torch
from torch import Tensor

from .packing import Packing

# torch's own kernel, which the public ways to attention reach with padding or nested tensors alone.
operation = torch.ops.aten._flash_attention_forward
_DTYPES = (torch.float16, torch.bfloat16)
_WIDEST = 256  # numbers a head
_MULTIPLE = 8
_LEAST_CAPABILITY = (8, 0)  # Ampere


def is_supported(rows: Tensor, d_k: int, d_v: int) -> bool:
    """Whether the kernel can do attention over projections of this kind, with heads this wide."""
    return (
        rows.is_cuda
        and rows.dtype in _DTYPES
        and d_k == d_v <= _WIDEST
        and d_k % _MULTIPLE == 0
        and torch.backends.cuda.flash_sdp_enabled()
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(rows.device) >= _LEAST_CAPABILITY
    )


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    packing: Packing,
    key_packing: Packing,
    causal: bool,
    scale: float,
) -> Tensor:
    """Attention(Q, K, V) of equation (1) in each sentence and head.

    Dao, *FlashAttention-2* (2023): https://arxiv.org/abs/2307.08691.

    Args:
        q: ``[N, H, K]``.
        k: ``[N_s, H, K]``.
        v: ``[N_s, H, K]``.
        packing: of the queries, without idle rows.
        key_packing: of the keys and values.
        causal: position i of a sentence sees its positions up to i.
        scale: of the products.

    Returns:
        ``[N, H, K]``.
    """
    return operation(
        *(q, k, v),
        *(packing.offsets, key_packing.offsets),
        *(packing.max_length, key_packing.max_length),
        0.0,  # dropout
        causal,
        False,  # no debugging mask
        scale=scale,
    )[0]
