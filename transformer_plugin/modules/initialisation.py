"""Weight initialisation: the authors' and fairseq's."""

from __future__ import annotations

import math

from torch import nn

from .feed_forward import PositionwiseFeedForward
from .multi_head_attention import MultiHeadAttention


def initialise(module: nn.Module, scheme: str) -> None:
    """Initialises every attention and feed-forward block below ``module``.

    ``paper``: Xavier-uniform for each matrix, with the fused q/k/v of self-attention and k/v of
    encoder-decoder attention counted as one matrix, and zero biases. Deviation: tensor2tensor's
    first release does this; the paper does not specify it. ``fairseq``: a gain of 1/sqrt(2) on each
    of q, k and v in both kinds of attention, and torch's default for the feed-forward network and
    the biases of q, k and v.

    Raises:
        ValueError: an unknown scheme.
    """
    if scheme not in ("paper", "fairseq"):
        raise ValueError(f"unknown initialisation '{scheme}': expected paper or fairseq")
    for block in module.modules():
        if isinstance(block, MultiHeadAttention):
            _initialise_attention(block, scheme)
        elif isinstance(block, PositionwiseFeedForward) and scheme == "paper":
            for linear in (block.inner, block.outer):
                _initialise_map(linear)


def _initialise_attention(attention: MultiHeadAttention, scheme: str) -> None:
    _initialise_map(attention.output)
    k, v = attention.num_heads * attention.d_k, attention.num_heads * attention.d_v
    if attention.encoder_decoder:
        projections = [(attention.query, [k]), (attention.key_value, [k, v])]
    else:
        projections = [(attention.query_key_value, [k, k, v])]
    for projection, widths in projections:
        if scheme == "paper":
            _initialise_map(projection)
            continue
        for part in projection.weight.split(widths):
            nn.init.xavier_uniform_(part, gain=1 / math.sqrt(2))


def _initialise_map(linear: nn.Linear) -> None:
    nn.init.xavier_uniform_(linear.weight)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)


def initialise_embedding(embedding: nn.Embedding) -> None:
    """N(0, 1/d_model): after scaling by sqrt(d_model) (section 3.4) the variance is one."""
    nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
    # Deviation: the paper does not specify this; padding is an output class, so its row is trained.
    if embedding.padding_idx is not None:
        nn.init.zeros_(embedding.weight[embedding.padding_idx])
