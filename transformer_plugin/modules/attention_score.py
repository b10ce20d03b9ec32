"""How queries and keys are compared: the paper's score and others from the literature."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

ATTENTION_SCORES = ("scaled_dot", "dot", "general", "additive")


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

    @property
    def is_plain(self) -> bool:
        """Whether it is a scaled product of unchanged queries and keys; False for subclasses."""
        return type(self) is AttentionScore and self.kind in ("scaled_dot", "dot")

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
