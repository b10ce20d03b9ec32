"""FlashAttention over packed rows on a GPU, without padding."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...modules.attention import attention
from ...modules.key_values import Layout, sentence_attention
from ...modules.multi_head_attention import MultiHeadAttention
from ..plain_modules import is_packed_attention
from ..registry import kernel

_DTYPES = (torch.float16, torch.bfloat16)
_WIDEST = 256  # largest d_k
_MULTIPLE = 8
_UNLIMITED = -1
_LEAST_CAPABILITY = (8, 0)  # Ampere


def _supports(module: MultiHeadAttention, rows: Tensor, *rest: Any) -> bool:
    return (
        is_packed_attention(module, rows, *rest)
        and _can_read(rows)
        and module.d_k == module.d_v <= _WIDEST
        and module.d_k % _MULTIPLE == 0
    )


@functools.cache
def flash_attention() -> Callable[..., Any] | None:
    """torch's attention over packed rows; None if this version of torch has none that takes a scale
    and a window."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    has_both = {"scale", "window_size"} <= inspect.signature(varlen_attn).parameters.keys()
    return varlen_attn if has_both else None


def _can_read(rows: Tensor) -> bool:
    """Whether the device and the type of ``rows`` support the kernel."""
    return (
        rows.is_cuda
        and rows.dtype in _DTYPES
        and flash_attention() is not None
        and torch.backends.cuda.flash_sdp_enabled()
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(rows.device) >= _LEAST_CAPABILITY
    )


@kernel(sentence_attention, _supports, stands_for=[attention, MultiHeadAttention])
def packed_flash_attention(
    module: MultiHeadAttention,
    rows: Tensor,
    memory_rows: Tensor | None,
    layout: Layout,
    need_weights: bool,
) -> tuple[Tensor, None]:
    """See ``sentence_attention``; the rows include no idle ones.

    Dao, *FlashAttention-2* (2023): https://arxiv.org/abs/2307.08691.
    """
    if memory_rows is None:
        q, k, v = module.self_heads(rows.unsqueeze(0))
    else:
        q = module.heads(rows.unsqueeze(0), module.d_k)
        k, v = module.memory_heads(memory_rows.unsqueeze(0))
    attend = flash_attention()
    assert attend is not None
    before = module.window or _UNLIMITED
    context = attend(
        *(x.squeeze(0).transpose(0, 1) for x in (q, k, v)),  # [N, H, K]
        *(layout.queries.offsets, layout.keys.offsets),
        *(layout.queries.max_length, layout.keys.max_length),
        scale=module.score.scale,
        window_size=(before, 0 if layout.causal else before),
    )
    return context.flatten(1), None
