"""Checks for kernels: whether modules compute the plain equation and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..modules.attention import AttentionScore
from ..modules.decoder import Decoder
from ..modules.int8_linear import Int8Linear
from ..modules.key_values import Layout
from ..modules.multi_head_attention import MultiHeadAttention
from ..modules.operation import is_exactly

Linear = nn.Linear | Int8Linear


def is_equation_1(module: MultiHeadAttention) -> bool:
    """Whether ``module`` is softmax(scale Q K^T) V in each head, without dropout."""
    return (
        is_exactly(module, MultiHeadAttention)
        and is_exactly(module.score, AttentionScore)
        and module.score.kind in ("scaled_dot", "dot")
        and isinstance(module.score.scale, float)
        and not (module.dropout and module.training)
    )


def is_packed_attention(
    module: MultiHeadAttention,
    rows: Tensor,
    memory_rows: Tensor | None,
    layout: Layout,
    need_weights: bool,
) -> bool:
    """Whether ``sentence_attention`` of these is equation 1, without the weights, on the rows of
    ``layout``, of one type, with its own keys for each sentence."""
    keys = rows if memory_rows is None else memory_rows
    return (
        not need_weights
        and is_equation_1(module)
        and layout.queries.batch_size == layout.keys.batch_size
        and rows.size(0) == layout.queries.positions.numel()
        and keys.size(0) == layout.keys.positions.numel()
        and keys.dtype == rows.dtype
    )


def is_plain_linear(module: nn.Module) -> bool:
    """Whether ``module`` is x W^T + b in floating point or in 8 bits, with as many elements in b as
    rows in W, and nothing else."""
    if not (is_exactly(module, nn.Linear) or is_exactly(module, Int8Linear)):
        return False
    assert isinstance(module, Linear)
    weight, bias = module.weight, module.bias
    return weight.numel() > 0 and (bias is None or bias.shape == weight.shape[:1])


def plain_projection(project: Callable[..., Any]) -> Linear | None:
    """The linear map without bias that ``project`` is, or that ``Decoder.output_layer`` applies
    and nothing else; None if ``project`` is something else."""
    owner = getattr(project, "__self__", None)
    found: Any = project
    if isinstance(owner, Decoder) and getattr(project, "__func__", None) is Decoder.output_layer:
        found = owner.output_projection
    is_plain = isinstance(found, nn.Module) and is_plain_linear(found)
    return found if is_plain and found.bias is None else None


def are_alike(*tensors: Tensor | None) -> bool:
    """Whether they are of one shape on one device, and each is dense, contiguous, in memory as its
    elements are, and of no subclass: parts of a DTensor would be copies."""
    given = [tensor for tensor in tensors if tensor is not None]
    return len({(tensor.shape, tensor.device) for tensor in given}) == 1 and all(
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.layout == torch.strided
        and tensor.is_contiguous()
        and not tensor.is_neg()
        and not tensor._is_zerotensor()
        for tensor in given
    )
