"""Attention over packed rows on a CPU, without padding. Without this kernel a training step takes
1.09 times as long in fp32, 1.11 in bf16 (``bench/kernels.py``)."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int64, c_void_p
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ...modules.attention import attention
from ...modules.key_values import Layout, sentence_attention
from ...modules.multi_head_attention import MultiHeadAttention
from ...modules.packing import Packing
from ..plain_modules import is_packed_attention
from ..registry import kernel
from ..second_derivatives import differentiable_gradients
from .library import is_supported, run


class _Sentences(ctypes.Structure):
    """``struct Sentences``; strides count elements, not bytes."""

    _fields_ = [
        *((name, c_int64) for name in ("count", "heads", "d_k", "d_v")),
        *((name, c_int64) for name in ("query_row", "key_row", "out_row")),
        *((name, c_void_p) for name in ("starts", "key_starts")),
        ("causal", c_int64),
        ("scale", c_float),
    ]


def _supports(module: MultiHeadAttention, rows: Tensor, *rest: Any) -> bool:
    return (
        is_packed_attention(module, rows, *rest)
        and not module.window
        and not torch.is_autocast_enabled("cpu")
        and is_supported(rows, module.d_k, module.d_v)
    )


@kernel(sentence_attention, _supports, stands_for=[attention, MultiHeadAttention])
def packed_attention(
    module: MultiHeadAttention,
    rows: Tensor,
    memory_rows: Tensor | None,
    layout: Layout,
    need_weights: bool,
) -> tuple[Tensor, None]:
    """See ``sentence_attention``; zeros for idle rows and for sentences without keys."""
    rows = rows.contiguous()
    memory = None if memory_rows is None else memory_rows.contiguous()
    sentences = _Sentences(
        layout.queries.batch_size,
        *(module.num_heads, module.d_k, module.d_v),
        *(rows.size(1), (rows if memory is None else memory).size(1)),
        module.num_heads * module.d_v,
        *(layout.queries.offsets.data_ptr(), layout.keys.offsets.data_ptr()),
        *(layout.causal, module.score.scale),
    )
    return _CompiledAttention.apply(module, sentences, layout, rows, memory), None


class _CompiledAttention(torch.autograd.Function):
    """Saves only the projections; backward recomputes the weights."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        module: MultiHeadAttention,
        sentences: _Sentences,
        layout: Layout,
        rows: Tensor,
        memory: Tensor | None,
    ) -> Tensor:
        out = rows.new_empty(rows.size(0), sentences.out_row)
        _clear_idle(out, layout.queries)
        run("attend", out.dtype, sentences, [*_split(sentences, rows, memory), out])
        ctx.save_for_backward(rows, memory)  # type: ignore[arg-type]
        ctx.given = module, sentences, layout  # type: ignore[attr-defined]
        return out

    @staticmethod
    def backward(ctx, grad_out):  # type: ignore[no-untyped-def]
        rows, memory = ctx.saved_tensors
        module, sentences, layout = ctx.given
        if torch.is_grad_enabled():

            def plain(rows: Tensor, memory: Tensor | None) -> Tensor:
                return sentence_attention.plain(module, rows, memory, layout, False)[0]

            found = differentiable_gradients(plain, (rows, memory), grad_out)
            return None, None, None, *found
        grad_out = grad_out.contiguous()
        grad_rows, grad_memory = torch.empty_like(rows), None
        _clear_idle(grad_rows, layout.queries)
        if memory is not None:
            grad_memory = torch.empty_like(memory)
            _clear_idle(grad_memory, layout.keys)
        given = [*_split(sentences, rows, memory), grad_out]
        wanted = _split(sentences, grad_rows, grad_memory)
        run("attend_back", rows.dtype, sentences, given + wanted)
        return None, None, None, grad_rows, grad_memory


def _clear_idle(rows: Tensor, packing: Packing) -> None:
    """Sets the rows after those of the sentences to 0."""
    rows[int(packing.offsets[-1]) :] = 0


def _split(sentences: _Sentences, rows: Tensor, memory: Tensor | None) -> list[Tensor]:
    """Queries, keys and values, as views."""
    width_k, width_v = sentences.heads * sentences.d_k, sentences.heads * sentences.d_v
    if memory is None:
        return list(rows.split([width_k, width_k, width_v], dim=1))
    return [rows, *memory.split([width_k, width_v], dim=1)]
