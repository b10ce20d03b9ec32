"""A decoding step through packed matrices (``packed_linear.py``), which are looked up and checked
once in a search, not in each product. Without this kernel a sentence alone takes 1.18 times as long
in fp32 and 1.24 in bf16, 1,000 sentences with beam 1 take 1.03 and 1.06 times as long
(``bench/kernels.py``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
from .packed_linear import bind_linear, packed

Sublayer = Callable[[Tensor, KeyValues], Tensor]


def _supports(decoder: Decoder) -> bool:
    # Nothing else may run between two steps: a user's own ``embed`` could change a layer.
    return (
        is_unmodified(decoder)
        and type(decoder).through_layers is Stack.through_layers
        and not torch.is_autocast_enabled("cpu")
        and not any(module.training for module in decoder.layers.modules())
        and all(_is_plain(layer, next(decoder.parameters())) for layer in decoder.layers)
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


@kernel(
    bind_layers,
    _supports,
    stands_for=[
        *(Stack.through_layers, DecoderLayer, Residual, MultiHeadAttention.forward),
        *(PositionwiseFeedForward, linear, product_type, Int8Linear, nn.Linear),
    ],
)
def bind_packed_layers(decoder: Decoder) -> LayersOfStep:
    """See ``bind_layers``. Weights that torch counts a change of are used as they are then."""
    sublayers_of_layers = [_sublayers(layer) for layer in decoder.layers]
    weights = [each.weight for layer in decoder.layers for each in _maps(layer)]
    versions = [weight._version for weight in weights]

    def through_layers(x: Tensor, key_values: Iterable[KeyValues]) -> Tensor:
        has_changed = versions != [weight._version for weight in weights]
        if has_changed or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return decoder.through_layers(x, key_values)[0]
        for sublayers, seen in zip(sublayers_of_layers, key_values, strict=True):
            for sublayer in sublayers:
                x = sublayer(x, seen)
        return x if decoder.norm is None else decoder.norm(x)

    return through_layers


def _sublayers(layer: DecoderLayer) -> list[Sublayer]:
    own, encoder = layer.self_attention, layer.encoder_attention
    project, own_output, query, encoder_output, inner, outer = map(bind_linear, _maps(layer))
    sublayers: list[Sublayer] = [
        lambda x, seen: own_output(seen.self_attention(own, project(x), False)[0]),
        lambda x, seen: encoder_output(seen.encoder_attention(encoder, query(x), False)[0]),
        lambda x, _seen: outer(inner(x, relu=True)),
    ]
    return list(map(_with_residual, _residuals(layer), sublayers))


def _with_residual(residual: Residual, sublayer: Sublayer) -> Sublayer:
    norm = residual.norm.forward
    if residual.pre_norm:
        return lambda x, seen: x + sublayer(norm(x), seen)
    return lambda x, seen: norm(x + sublayer(x, seen))
