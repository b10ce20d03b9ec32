"""A decoding step in which each layer is one call: its packed matrices (``packed_linear.py``) are
looked up and checked once in a search, and threads do not wait for Python's lock. Without this
kernel a sentence alone takes 1.21 times as long in fp32 and 1.28 in bf16, 1,000 sentences with beam
1 take 1.08 and 1.09 times as long (``bench/kernels.py``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ctypes import addressof
from typing import TypeGuard

import torch
from torch import Tensor, nn

from ...modules.decoder import Decoder
from ...modules.feed_forward import PositionwiseFeedForward
from ...modules.int8_linear import Int8Linear
from ...modules.key_values import KeyValues
from ...modules.layers import DecoderLayer
from ...modules.linear import linear
from ...modules.multi_head_attention import MultiHeadAttention
from ...modules.operation import is_unmodified
from ...modules.products import product_type
from ...modules.residual import Residual
from ...modules.stack import Stack
from ...search.decoder_state import LayersOfStep, bind_layers
from ..plain_modules import Linear, is_plain_linear
from ..registry import kernel
from .decoder_cache import TableLayerCache
from .library import entry_point, operators
from .packed_linear import operands, packed, product_functions

_LAYER_NORM = nn.functional.layer_norm
Step = Callable[[Tensor, TableLayerCache], Tensor]


def _supports(decoder: Decoder) -> bool:
    # Nothing else may run between two steps: a user's own ``embed`` could change a layer.
    return (
        is_unmodified(decoder)
        and type(decoder).through_layers is Stack.through_layers
        and nn.functional.layer_norm is _LAYER_NORM  # a program may have replaced it
        and not torch.is_autocast_enabled("cpu")
        and not any(module.training for module in decoder.layers.modules())
        and all(_is_plain(layer, next(decoder.parameters())) for layer in decoder.layers)
        and operators() is not None  # last, because it may compile them
    )


def _is_plain(layer: DecoderLayer, x: Tensor) -> bool:
    """Whether an unmodified layer is the paper's, with packed matrices for the type of ``x``."""
    if type(layer) is not DecoderLayer:
        return False
    own, encoder, network = layer.self_attention, layer.encoder_attention, layer.feed_forward
    return (
        type(own) is type(encoder) is MultiHeadAttention
        and encoder.encoder_decoder
        and not own.encoder_decoder
        and type(network) is PositionwiseFeedForward
        and all(type(each) is Residual for each in _residuals(layer))
        and all(type(each.norm) is nn.LayerNorm for each in _residuals(layer))
        and all(is_plain_linear(each) and packed(each, x) is not None for each in _maps(layer))
        and [tuple(each.weight.shape) for each in _maps(layer)] == _shapes(layer)
        and all(
            each.norm.normalized_shape == network.outer.weight.shape[:1]
            for each in _residuals(layer)
        )
    )


def _residuals(layer: DecoderLayer) -> tuple[Residual, Residual, Residual]:
    return (
        layer.self_attention_residual,
        layer.encoder_attention_residual,
        layer.feed_forward_residual,
    )


def _maps(layer: DecoderLayer) -> tuple[Linear, ...]:
    """The linear maps of a step, in order."""
    own, encoder, network = layer.self_attention, layer.encoder_attention, layer.feed_forward
    in_attention = own.query_key_value, own.output, encoder.query, encoder.output
    return *in_attention, network.inner, network.outer


def _shapes(layer: DecoderLayer) -> list[tuple[int, int]]:
    """Those of the weights of ``_maps`` if each fits its neighbours; C++ does not check."""
    own, encoder = layer.self_attention, layer.encoder_attention
    d_ff, d_model = layer.feed_forward.inner.weight.shape
    return [
        *((own.num_heads * (2 * own.d_k + own.d_v), d_model), (d_model, own.num_heads * own.d_v)),
        *((encoder.num_heads * encoder.d_k, d_model), (d_model, encoder.num_heads * encoder.d_v)),
        *((d_ff, d_model), (d_model, d_ff)),
    ]


@kernel(
    bind_layers,
    _supports,
    stands_for=[
        *(Stack.through_layers, DecoderLayer, Residual, MultiHeadAttention.forward),
        *(PositionwiseFeedForward, linear, product_type, Int8Linear, nn.Linear, nn.LayerNorm),
    ],
)
def bind_packed_layers(decoder: Decoder) -> LayersOfStep:
    """See ``bind_layers``. Weights that torch counts a change of are used as they are then."""
    dtype = next(decoder.parameters()).dtype
    steps = [_bound(layer, dtype) for layer in decoder.layers]
    weights = [each.weight for layer in decoder.layers for each in _maps(layer)]
    versions = [weight._version for weight in weights]
    d_model = weights[0].size(1)

    def through_layers(x: Tensor, key_values: Iterable[KeyValues]) -> Tensor:
        key_values = list(key_values)
        caches = [each for each in key_values if _has_rows_of(each, dtype)]
        if (
            len(caches) < len(steps)
            or x.numel() == 0
            or (x.dtype, x.size(-1)) != (dtype, d_model)
            or versions != [weight._version for weight in weights]
            or torch.is_grad_enabled()
            or torch.is_autocast_enabled("cpu")
        ):
            return decoder.through_layers(x, key_values)[0]
        x = x.contiguous()
        for step, seen in zip(steps, caches, strict=True):
            x = step(x, seen)
        return x if decoder.norm is None else decoder.norm(x)

    return through_layers


def _has_rows_of(cache: KeyValues, dtype: torch.dtype) -> TypeGuard[TableLayerCache]:
    return isinstance(cache, TableLayerCache) and cache.memory.dtype == dtype


def _bound(layer: DecoderLayer, dtype: torch.dtype) -> Step:
    own, encoder, residuals = layer.self_attention, layer.encoder_attention, _residuals(layer)
    norms = [each.norm for each in residuals]
    arguments = (
        *map(list, zip(*map(operands, _maps(layer)), strict=True)),
        [norm.weight for norm in norms],
        [norm.bias for norm in norms],
        [norm.eps for norm in norms],
        [each.pre_norm for each in residuals],
    )
    found = operators()
    assert found is not None
    decoder_layer = found.decoder_layer.default
    functions = entry_point("attend_rows", dtype), product_functions(dtype)
    widths = own.query_key_value.weight.size(0), encoder.query.weight.size(0)

    def step(x: Tensor, seen: TableLayerCache) -> Tensor:
        past = seen.own_attention(own, (*x.shape[:2], widths[0]))
        memory = seen.memory_attention(encoder, (*x.shape[:2], widths[1]))
        x, projected = decoder_layer(x, *arguments, addressof(past), addressof(memory), *functions)
        seen.steps.append(projected)
        return x

    return step
