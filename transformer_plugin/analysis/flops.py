"""Floating-point operations of a Transformer, counted and in the paper's way.

Counted are the matrix products, 2 operations for each multiply-add; the rest (softmax,
normalisation, biases, the optimizer) is about a hundredth of them. Masked positions of causal
attention are counted, since the paper's implementation computes them.
"""

from __future__ import annotations

from typing import TypeVar

Count = TypeVar("Count")  # a number, or a tensor of them: a sentence each

BACKWARD = 2  # a matrix product's two gradients cost as much again each
P100 = 9.5e12  # sustained single-precision operations a second that the paper assumes


def encoder_flops(
    n_layers: int, d_model: int, d_ff: int, heads: int, d_k: int, d_v: int, source: Count
) -> Count:
    """Forward pass of the encoder over one sentence of ``source`` tokens, S."""
    projections = 2 * source * d_model * heads * (2 * d_k + 2 * d_v)
    weighting = 2 * source * source * heads * (d_k + d_v)
    return n_layers * (projections + weighting + 4 * source * d_model * d_ff)


def decoder_flops(
    n_layers: int,
    d_model: int,
    d_ff: int,
    heads: int,
    d_k: int,
    d_v: int,
    source: Count,
    target: Count,
) -> Count:
    """Forward pass of the decoder, teacher forcing: S source and T target tokens."""
    self_attention = (
        2 * target * d_model * heads * (2 * d_k + 2 * d_v)
        + 2 * target * target * heads * (d_k + d_v)
    )  # fmt: skip
    encoder_decoder_attention = (
        2 * target * d_model * heads * (d_k + d_v)  # W^Q and W^O
        + 2 * source * d_model * heads * (d_k + d_v)  # W^K and W^V, once a memory position
        + 2 * target * source * heads * (d_k + d_v)
    )
    feed_forward = 4 * target * d_model * d_ff
    return n_layers * (self_attention + encoder_decoder_attention + feed_forward)


def output_flops(d_model: int, vocab: int, target: Count) -> Count:
    """The pre-softmax linear map (section 3.4) of ``target`` tokens."""
    return 2 * target * d_model * vocab


def transformer_flops(
    n_layers: int,
    d_model: int,
    d_ff: int,
    heads: int,
    d_k: int,
    d_v: int,
    vocab: int,
    source: int,
    target: int,
) -> int:
    """Forward pass over one pair of sentences, output projection included."""
    shape = (n_layers, d_model, d_ff, heads, d_k, d_v)
    layers = encoder_flops(*shape, source) + decoder_flops(*shape, source, target)
    return layers + output_flops(d_model, vocab, target)


def training_flops(forward: Count) -> Count:
    """Forward and backward pass."""
    return forward * (1 + BACKWARD)


def device_flops(seconds: float, devices: int, sustained: float = P100) -> float:
    """The paper's way (Table 2): training time x GPUs x what a GPU sustains."""
    return seconds * devices * sustained
