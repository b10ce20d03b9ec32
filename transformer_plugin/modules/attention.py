"""Scaled dot-product attention, section 3.2.1 of the paper, its causal mask (section 3.2.3), and
other scores of the literature."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .dropout import dropout
from .operation import operation

ATTENTION_SCORES = ("scaled_dot", "dot", "general", "additive")


@operation
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    score: AttentionScore,
    allowed: Tensor | None = None,
    rate: float = 0.0,
    need_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation (1), in each head.

    Args:
        q: ``[B, H, T, K]``.
        k: ``[B, H, S, K]``.
        v: ``[B, H, S, d_v]``.
        score: how queries and keys are compared.
        allowed: see ``attention_weights``.
        rate: dropout rate on the weights.

    Returns:
        ``[B, H, T, d_v]``, of the type of ``q``; and the weights ``[B, H, T, S]``, in float32 or
        wider, if ``need_weights``, else None.
    """
    weights = attention_weights(score(q.to(k.dtype), k), allowed)
    context = torch.matmul(dropout(weights, rate).to(v.dtype), v)
    return context.to(q.dtype), weights if need_weights else None


def attention_weights(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """The softmax over the keys of equation (1), in float32 or wider.

    Args:
        scores: ``[B, H, T, S]``.
        allowed: broadcasts to ``[B, H, T, S]``: True = visible, or a float that is added to the
            scores; None = all keys are visible.

    Returns:
        ``[B, H, T, S]``, each row a distribution over the visible keys; zeros for a query that
        sees no key.

    Raises:
        TypeError: ``allowed`` holds integers.
    """
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if allowed is None:
        return scores.softmax(dim=-1)
    if allowed.dtype == torch.bool:
        scores = scores.masked_fill(~allowed, -math.inf)
    elif allowed.is_floating_point():
        scores = scores + allowed
    else:
        raise TypeError(f"allowed is {allowed.dtype}: give allowed.bool()")
    sees_nothing = scores.isneginf().all(dim=-1, keepdim=True)
    return scores.masked_fill(sees_nothing, 0.0).softmax(dim=-1).masked_fill(sees_nothing, 0.0)


class Positions(NamedTuple):
    """The positions, from 0, of queries and keys of self-attention in their sentences.

    In a search all queries are at the last position, and each position has as many keys as there
    are hypotheses.

    Attributes:
        queries: ``[T]``.
        keys: ``[S]``.
    """

    queries: Tensor
    keys: Tensor


def position_mask(positions: Positions, causal: bool, window: int) -> Tensor:
    """Which keys each query of self-attention sees, ``[T, S]``, True = visible.

    Args:
        causal: only positions up to its own (section 3.2.3).
        window: greatest distance; 0 = unlimited (section 4, restricted self-attention).
    """
    distance = positions.queries.unsqueeze(1) - positions.keys
    seen = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    return seen & (distance.abs() <= window) if window else seen


class AttentionScore(nn.Module):
    """The score of each query with each key; each head has its own weights.

    ``scaled_dot``: q k / sqrt(d_k), equation (1). ``dot``: q k. ``general``: q W k, Luong et al.
    2015, section 3.1. ``additive``: v tanh(W q + U k), Bahdanau et al. 2015, appendix A.1.2; it
    needs memory of order T x S x d_k.

    Args:
        kind: one of ``ATTENTION_SCORES``.
        num_heads: H.
        d_k: K.

    Raises:
        ValueError: an unknown kind.
    """

    def __init__(self, kind: str, num_heads: int, d_k: int) -> None:
        super().__init__()
        if kind not in ATTENTION_SCORES:
            raise ValueError(
                f"unknown attention score '{kind}': expected one of {', '.join(ATTENTION_SCORES)}"
            )
        self.kind = kind
        self.scale = 1 / math.sqrt(d_k) if kind == "scaled_dot" else 1.0
        if kind == "general":
            self.weight = nn.Parameter(torch.empty(num_heads, d_k, d_k))
        elif kind == "additive":
            self.query_weight = nn.Parameter(torch.empty(num_heads, d_k, d_k))
            self.key_weight = nn.Parameter(torch.empty(num_heads, d_k, d_k))
            self.vector = nn.Parameter(torch.empty(num_heads, d_k))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -math.sqrt(3 / d_k), math.sqrt(3 / d_k))

    @property
    def is_product(self) -> bool:
        """Whether the score is a scaled product of keys with ``transform(q)``."""
        return self.kind != "additive"

    def transform(self, q: Tensor) -> Tensor:
        """Transforms the queries before the product with the keys, ``[B, H, T, K]``."""
        return torch.matmul(q, self.weight) if self.kind == "general" else q

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """Scores ``[B, H, T, S]`` of queries ``[B, H, T, K]`` and keys ``[B, H, S, K]``."""
        if self.is_product:
            return torch.matmul(self.transform(q) * self.scale, k.transpose(2, 3))
        asked = torch.matmul(q, self.query_weight).unsqueeze(3)  # [B, H, T, 1, K]
        offered = torch.matmul(k, self.key_weight).unsqueeze(2)  # [B, H, 1, S, K]
        return torch.einsum("bhtsk,hk->bhts", torch.tanh(asked + offered), self.vector)
