"""A decoder's weights as a search on a CPU reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...modules.attention import MultiHeadAttention
from ...modules.attention_score import AttentionScore
from ...modules.decoder import Decoder
from ...modules.feed_forward import PositionwiseFeedForward
from ...modules.layers import DecoderLayer
from ...modules.residual import Residual
from ...search.decoder_state import StepDecoder, prepare_decoding, start_decoding
from ..projection import plain_projection
from ..registry import kernel
from . import decoder_step, library, mkl

_WORTH_PACKING = 8  # rows; with fewer MKL's product takes the matrices as they are


class DecodingWeights(NamedTuple):
    """For the batches of one call, between which no weight changes.

    Attributes:
        whole_step: the layers in one call; None where no kernel can do their work.
        projection: the pre-softmax matrix, where it is packed.
    """

    whole_step: decoder_step.CompiledStep | None = None
    projection: mkl.PackedWeight | None = None


def _supports(decoder: StepDecoder, project: Callable[..., Any], rows: int) -> bool:
    projection = plain_projection(project)
    return (
        not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and projection is not None
        and projection.weight.device.type == "cpu"
    )


@kernel(
    prepare_decoding,
    _supports,
    stands_for=[
        *(start_decoding, DecoderLayer, Residual, PositionwiseFeedForward, Decoder.output_layer),
        *(MultiHeadAttention, AttentionScore),
    ],
)
def prepare(decoder: StepDecoder, project: Callable[..., Any], rows: int) -> DecodingWeights:
    """See ``prepare_decoding``."""
    projection = plain_projection(project)
    assert projection is not None
    weight, packed = projection.weight, rows >= _WORTH_PACKING
    step = None
    is_readable = decoder.norm is None and library.is_supported(weight)
    if is_readable and decoder_step.is_supported(list(decoder.layers), weight.dtype):
        step = decoder_step.CompiledStep(decoder.layers, packed)
    packable = packed and mkl.can_be_packed(weight)
    return DecodingWeights(step, mkl.PackedWeight(weight) if packable else None)


def packed_product(features: Tensor, prepared: Any, logits: Tensor) -> Tensor | None:
    """The logits of features ``[R, D]`` in ``logits``, ``[R, V]``; None where ``prepared``, which
    ``prepare_decoding`` gave, holds no packed matrix."""
    if not isinstance(prepared, DecodingWeights) or prepared.projection is None:
        return None
    return prepared.projection.product(features.contiguous(), logits)
