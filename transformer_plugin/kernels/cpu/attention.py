"""Attention over packed rows on a CPU: padding is neither made nor passed over."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int64, c_void_p
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ...modules.attention import MultiHeadAttention, attention
from ...modules.key_values import sentence_attention
from ...modules.packing import Packing
from ..plain_attention import is_equation_1
from ..registry import kernel
from .library import is_supported, run


class _Sentences(ctypes.Structure):
    """``struct Sentences``; strides count numbers, not bytes."""

    _fields_ = [
        *((name, c_int64) for name in ("count", "heads", "d_k", "d_v")),
        *((name, c_int64) for name in ("query_row", "key_row", "out_row")),
        *((name, c_void_p) for name in ("starts", "key_starts")),
        ("causal", c_int64),
        ("scale", c_float),
    ]


@dataclass(frozen=True)
class _Heads:
    """What attention over packed rows has to know of them.

    Attributes:
        num_heads: H.
        d_k: K.
        d_v: width of a value in one head.
        scale: of the products.
        packing: of the queries.
        key_packing: of the keys and values.
        causal: position i of a sentence sees its positions up to i.
    """

    num_heads: int
    d_k: int
    d_v: int
    scale: float
    packing: Packing
    key_packing: Packing
    causal: bool


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
        and is_equation_1(module)
        and not module.window
        and (memory_rows is None or memory_rows.dtype == rows.dtype)
        and not torch.is_autocast_enabled("cpu")
        and is_supported(rows, module.d_k, module.d_v)
    )


@kernel(sentence_attention, _supports, stands_for=[attention, MultiHeadAttention])
def packed_attention(
    module: MultiHeadAttention,
    rows: Tensor,
    memory_rows: Tensor | None,
    packing: Packing,
    key_packing: Packing,
    causal: bool,
    need_weights: bool,
) -> tuple[Tensor, None]:
    """See ``sentence_attention``; 0 for idle rows, and where there is no key."""
    numbers = (module.num_heads, module.d_k, module.d_v, module.score.scale)
    heads = _Heads(*numbers, packing, key_packing, causal)
    memory = None if memory_rows is None else memory_rows.contiguous()
    return _CompiledAttention.apply(heads, rows.contiguous(), memory), None


class _CompiledAttention(torch.autograd.Function):
    """Keeps the projections alone; the weights are computed again on the way back."""

    @staticmethod
    def forward(ctx: FunctionCtx, heads: _Heads, rows: Tensor, memory: Tensor | None) -> Tensor:
        out = rows.new_empty(rows.size(0), heads.num_heads * heads.d_v)
        _clear_idle(out, heads.packing)
        _run("attend", heads, out, _split(heads, rows, memory), [out])
        ctx.save_for_backward(rows, memory)  # type: ignore[arg-type]
        ctx.heads = heads  # type: ignore[attr-defined]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):  # type: ignore[no-untyped-def]
        rows, memory = ctx.saved_tensors
        heads: _Heads = ctx.heads
        grad_out = grad_out.contiguous()
        grad_rows, grad_memory = torch.empty_like(rows), None
        _clear_idle(grad_rows, heads.packing)
        if memory is not None:
            grad_memory = torch.empty_like(memory)
            _clear_idle(grad_memory, heads.key_packing)
        given = [*_split(heads, rows, memory), grad_out]
        _run("attend_back", heads, grad_out, given, _split(heads, grad_rows, grad_memory))
        return None, grad_rows, grad_memory


def _clear_idle(rows: Tensor, packing: Packing) -> None:
    """Sets the rows behind those of the sentences to 0."""
    rows[int(packing.offsets[-1]) :] = 0


def _split(heads: _Heads, rows: Tensor, memory: Tensor | None) -> list[Tensor]:
    """Queries, keys and values, as views."""
    width_k, width_v = heads.num_heads * heads.d_k, heads.num_heads * heads.d_v
    if memory is None:
        return list(rows.split([width_k, width_k, width_v], dim=1))
    return [rows, *memory.split([width_k, width_v], dim=1)]


def _run(name: str, heads: _Heads, out: Tensor, given: list[Tensor], wanted: list[Tensor]) -> None:
    """Calls a kernel, in as many threads as torch has.

    Args:
        out: the context, or its gradient.
        given: queries, keys, values, and what else it reads.
        wanted: what it writes.
    """
    starts, key_starts = heads.packing.offsets, heads.key_packing.offsets
    sentences = _Sentences(
        heads.packing.batch_size,
        *(heads.num_heads, heads.d_k, heads.d_v),
        *(given[0].stride(0), given[1].stride(0), out.stride(0)),
        *(starts.data_ptr(), key_starts.data_ptr()),
        *(heads.causal, heads.scale),
    )
    run(name, out.dtype, sentences, given + wanted)
