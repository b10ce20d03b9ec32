"""What a decoder remembers of the positions before, in step-by-step decoding."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from .attention import MultiHeadAttention


class LayerCache(Protocol):
    """What one decoder layer remembers of k hypotheses of each of B sentences."""

    def self_attention(self, attention: MultiHeadAttention, projected: Tensor) -> Tensor:
        """Takes up a position, its queries, keys and values ``[B, k, H * (2 K + d_v)]``.

        Returns:
            What each hypothesis sees in its own past, itself included, ``[B, k, H * d_v]``.
        """

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """What queries ``[B, k, H * K]`` see in the encoder's output, ``[B, k, H * d_v]``, and
        the weights ``[B, H, k, S]`` when asked."""


class Past(Protocol):
    """What a decoder remembers; B and k may change from step to step."""

    layers: list[LayerCache]

    @property
    def room(self) -> int:
        """All positions so far, and that of the step being made, are below it."""

    def extend(self) -> Tensor:
        """Takes up a position of each live hypothesis, before the layers do; its number, from 0,
        ``[1]``."""

    def follow(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was, ``[b]``."""


class Memory:
    """The encoder's output as one decoder layer sees it, projected once for all steps.

    Args:
        keys: ``[B, H, S, K]``.
        values: ``[B, H, S, d_v]``.
        allowed: ``[B, 1, 1, S]``, True = may be seen; None where all may.
    """

    def __init__(self, keys: Tensor, values: Tensor, allowed: Tensor | None) -> None:
        if keys.dtype == torch.bfloat16 and not keys.is_cuda:
            keys, values = keys.float(), values.float()  # as attention is; not at each step
        self.keys, self.values = keys.contiguous(), values.contiguous()
        if allowed is not None:  # as what is added to the scores
            allowed = torch.where(allowed, 0.0, keys.new_full((), -math.inf))
        self.allowed = allowed

    def attend(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """See ``LayerCache.encoder_attention``."""
        q = attention.heads(queries, attention.d_k)
        return attention.attend(
            q, self.keys, self.values, self.allowed, need_weights=need_weights
        )

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was; also fewer or more of them."""
        self.keys = self.keys.index_select(0, sentences)
        self.values = self.values.index_select(0, sentences)
        if self.allowed is not None:
            self.allowed = self.allowed.index_select(0, sentences)


def widened(buffer: Tensor, columns: int) -> Tensor:
    """``[B, H, c, K]`` with so many columns, the new ones zero: what is masked must be a number."""
    wider = buffer.new_zeros(*buffer.shape[:2], columns, buffer.size(3))
    wider[:, :, : buffer.size(2)] = buffer
    return wider
