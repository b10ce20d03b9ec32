"""Token embedding plus positional encoding, the input of both stacks (sections 3.4, 3.5)."""

from __future__ import annotations

import math

from torch import Tensor, nn

from .dropout import dropout
from .positional_encoding import LearnedPositionalEncoding, SinusoidalPositionalEncoding


def build_positional_encoding(
    kind: str, d_model: int, max_positions: int, padding_idx: int
) -> nn.Module:
    """The encoding that ``--positional-encoding`` names.

    Args:
        kind: ``paper``, ``t2t``, ``fairseq`` or ``learned``.
        max_positions: length of the longest sentence; for ``learned`` only.
        padding_idx: the id of padding, after which fairseq's positions begin.

    Raises:
        ValueError: an unknown kind.
    """
    fairseq_first_position = padding_idx + 1
    if kind == "paper":
        return SinusoidalPositionalEncoding(d_model)
    if kind == "t2t":
        return SinusoidalPositionalEncoding(d_model, halves=True)
    if kind == "fairseq":
        return SinusoidalPositionalEncoding(d_model, True, fairseq_first_position)
    if kind == "learned":
        return LearnedPositionalEncoding(d_model, max_positions, fairseq_first_position)
    raise ValueError(
        f"unknown positional encoding '{kind}': expected paper, t2t, fairseq or learned"
    )


def embed(
    tokens: Tensor,
    positions: Tensor,
    max_length: int,
    embed_tokens: nn.Embedding,
    embed_positions: nn.Module,
    rate: float,
) -> Tensor:
    """Dropout(sqrt(d_model) E[tokens] + PE(positions)), sections 3.4 and 5.4.

    Args:
        tokens: ids, ``[N]`` for a packed batch or ``[B, k]`` for one position.
        positions: their positions, ``[N]`` or ``[1]``, all below ``max_length``.
        rate: dropout rate; 0 outside training.

    Returns:
        ``[..., D]``.
    """
    x = embed_tokens(tokens) * math.sqrt(embed_tokens.embedding_dim)
    return dropout(x + embed_positions(positions, max_length).to(x.dtype), rate)
