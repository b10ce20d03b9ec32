"""Floating-point operations of a Transformer: counted, and estimated as in the paper.

Only matrix products are counted, 2 operations for each multiply-add. The rest (softmax,
normalisation, biases, the optimizer) is about 1 % of them. Masked positions of causal attention
count, because the paper's implementation computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

# One sentence's count, or a tensor with one for each sentence.
Count = TypeVar("Count", int, float, "Tensor")

BACKWARD = 2  # times the forward pass: each of a product's two gradients costs one product
P100 = 9.5e12  # sustained single-precision operations per second that the paper assumes


@dataclass(frozen=True)
class Dimensions:
    """The sizes that determine parameters and operations, of one stack or of two equal ones."""

    n_layers: int
    d_model: int
    d_ff: int
    heads: int
    d_k: int
    d_v: int


def encoder_flops(n: Dimensions, source: Count) -> Count:
    """Forward pass of the encoder for a sentence of ``source`` tokens."""
    heads = n.heads * (n.d_k + n.d_v)
    projections = 4 * source * n.d_model * heads  # W^Q, W^K, W^V and W^O
    weighting = 2 * source * source * heads
    return n.n_layers * (projections + weighting + 4 * source * n.d_model * n.d_ff)


def decoder_flops(n: Dimensions, source: Count, target: Count) -> Count:
    """Forward pass of the decoder with teacher forcing, for a pair of sentences."""
    heads = n.heads * (n.d_k + n.d_v)
    self_attention = 4 * target * n.d_model * heads + 2 * target * target * heads
    encoder_decoder_attention = (
        2 * target * n.d_model * heads  # W^Q and W^O
        + 2 * source * n.d_model * heads  # W^K and W^V, of the encoder's output
        + 2 * target * source * heads
    )
    feed_forward = 4 * target * n.d_model * n.d_ff
    return n.n_layers * (self_attention + encoder_decoder_attention + feed_forward)


def output_flops(d_model: int, vocab: int, target: Count) -> Count:
    """The pre-softmax linear map (section 3.4) of ``target`` tokens."""
    return 2 * target * d_model * vocab


def transformer_flops(
    n: Dimensions, vocab: int, source: Count, target: Count, decoder: Dimensions | None = None
) -> Count:
    """Forward pass for a pair of sentences, with the output projection.

    Args:
        decoder: dimensions of the decoder, if they differ from those of the encoder.
    """
    layers = encoder_flops(n, source) + decoder_flops(decoder or n, source, target)
    return layers + output_flops(n.d_model, vocab, target)


def training_flops(forward: Count) -> Count:
    """Forward and backward pass."""
    return forward * (1 + BACKWARD)


def device_flops(seconds: float, devices: int) -> float:
    """The paper's estimate (Table 2): training time x number of GPUs x their sustained speed."""
    return seconds * devices * P100
