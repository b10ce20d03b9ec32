"""FlashAttention over packed rows on a GPU: padding is neither made nor passed over."""

from __future__ import annotations

import torch
from torch import Tensor

from ...modules.attention import MultiHeadAttention, attention
from ...modules.attention_score import AttentionScore
from ...modules.key_values import sentence_attention
from ...modules.operation import is_exactly
from ...modules.packing import Packing
from ..registry import kernel

# torch's own kernel, which the public ways to attention reach with padding or nested tensors alone.
flash_attention = torch.ops.aten._flash_attention_forward
_DTYPES = (torch.float16, torch.bfloat16)
_WIDEST = 256  # numbers a head
_MULTIPLE = 8
_LEAST_CAPABILITY = (8, 0)  # Ampere


def _supports(
    module: MultiHeadAttention,
    rows: Tensor,
    memory_rows: Tensor | None,
    packing: Packing,
    key_packing: Packing,
    causal: bool,
    need_weights: bool,
) -> bool:
    return (
        not need_weights
        and _can_read(rows)
        and is_exactly(module, MultiHeadAttention)
        and is_exactly(module.score, AttentionScore)
        and module.score.is_plain
        and not module.window
        and not (module.dropout and module.training)
        and module.d_k == module.d_v <= _WIDEST
        and module.d_k % _MULTIPLE == 0
    )


def _can_read(rows: Tensor) -> bool:
    """Whether their device has the kernel, and their type is one of its own."""
    return (
        rows.is_cuda
        and rows.dtype in _DTYPES
        and torch.backends.cuda.flash_sdp_enabled()
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(rows.device) >= _LEAST_CAPABILITY
    )


@kernel(sentence_attention, _supports, stands_for=[attention, MultiHeadAttention])
def packed_flash_attention(
    module: MultiHeadAttention,
    rows: Tensor,
    memory_rows: Tensor | None,
    packing: Packing,
    key_packing: Packing,
    causal: bool,
    need_weights: bool,
) -> tuple[Tensor, None]:
    """See ``sentence_attention``; without idle rows.

    Dao, *FlashAttention-2* (2023): https://arxiv.org/abs/2307.08691.
    """
    if memory_rows is None:
        q, k, v = module.self_heads(rows.unsqueeze(0))
    else:
        q = module.heads(rows.unsqueeze(0), module.d_k)
        k, v = module.memory_heads(memory_rows.unsqueeze(0))
    context = flash_attention(
        *(x.squeeze(0).transpose(0, 1) for x in (q, k, v)),  # [N, H, K]
        *(packing.offsets, key_packing.offsets),
        *(packing.max_length, key_packing.max_length),
        0.0,  # dropout
        causal,
        False,  # no debugging mask
        scale=module.score.scale,
    )[0]
    return context.flatten(1), None
