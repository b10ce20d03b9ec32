"""What a decoder remembers of the positions before, in step-by-step decoding."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from .attention import MultiHeadAttention

_FIRST_CAPACITY = 32  # columns, where nothing better is known; doubled whenever they are full


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

    def extend(self) -> None:
        """Makes room for a position of each live hypothesis; before each step."""

    def follow(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was, ``[b]``."""


class MaskedPast:
    """A past in torch's operations: a buffer that is never reordered, and a mask that tells each
    hypothesis which columns are its own.

    Args:
        memories: keys ``[B, H, S, K]`` and values ``[B, H, S, d_v]`` of the encoder's output,
            a pair for each layer.
        memory_allowed: ``[B, 1, 1, S]``, True = may be seen; None where all may.
        columns: how many are likely to be needed.
    """

    def __init__(
        self,
        memories: list[tuple[Tensor, Tensor]],
        memory_allowed: Tensor | None = None,
        columns: int = _FIRST_CAPACITY,
    ) -> None:
        self._ancestry = Ancestry(memories[0][0])
        self._caches = [
            MaskedCache(keys, values, memory_allowed, columns, self._ancestry)
            for keys, values in memories
        ]
        self.layers: list[LayerCache] = [*self._caches]

    def extend(self) -> None:
        """See ``Past``."""
        self._ancestry.extend()

    def follow(self, parents: Tensor) -> None:
        """See ``Past``."""
        self._ancestry.follow(parents)

    def select(self, sentences: Tensor) -> None:
        """See ``Past``; also for more sentences than there were."""
        self._ancestry.select(sentences)
        for cache in self._caches:
            cache.select(sentences)


class Ancestry:
    """Which cached columns belong to each hypothesis: its own past, position by position.

    Args:
        like: gives dtype, device and the number of sentences; each starts with one hypothesis.
    """

    def __init__(self, like: Tensor) -> None:
        # Attention in bf16 is in float32 on a CPU, and so is what it adds to the scores.
        dtype = torch.float32 if _in_float32(like) else like.dtype
        self._mask = torch.empty(like.size(0), 1, 0, dtype=dtype, device=like.device)
        self._all_own = True

    @property
    def allowed(self) -> Tensor | None:
        """``[B, 1, k, columns]``: 0 where a hypothesis may see, minus infinity elsewhere; None
        where it may see all."""
        return None if self._all_own else self._mask.unsqueeze(1)

    def extend(self) -> None:
        """Adds a position of each of the k hypotheses."""
        batch_size, width, _ = self._mask.shape
        self._all_own = self._all_own and width == 1
        own = self._mask.new_full((width, width), -math.inf).fill_diagonal_(0.0)
        self._mask = torch.cat([self._mask, own.expand(batch_size, -1, -1)], dim=2)

    def follow(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was; ``[B, k]``, of any k."""
        index = parents.unsqueeze(2).expand(-1, -1, self._mask.size(2))
        self._mask = self._mask.gather(1, index)

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was."""
        self._mask = self._mask.index_select(0, sentences)


class MaskedCache:
    """Keys and values of one layer, side by side, position by position and hypothesis by
    hypothesis.

    Args:
        memory_keys: of the encoder's output, ``[B, H, S, K]``, projected once.
        memory_values: ``[B, H, S, d_v]``.
        memory_allowed: ``[B, 1, 1, S]``, True = may be seen; None where all may.
        columns: how many are likely to be needed.
        ancestry: which of them a hypothesis may see; shared by all layers.
    """

    def __init__(
        self,
        memory_keys: Tensor,
        memory_values: Tensor,
        memory_allowed: Tensor | None,
        columns: int,
        ancestry: Ancestry,
    ) -> None:
        if _in_float32(memory_keys):  # so the cache is not converted at each step
            memory_keys, memory_values = memory_keys.float(), memory_values.float()
        self._ancestry = ancestry
        self._memory_keys = memory_keys.contiguous()
        self._memory_values = memory_values.contiguous()
        if memory_allowed is not None:  # as what is added to the scores, once for all steps
            hidden = memory_keys.new_full((), -math.inf)
            memory_allowed = torch.where(memory_allowed, 0.0, hidden)
        self._memory_allowed = memory_allowed
        self._columns = 0
        self._keys = _buffer(memory_keys, columns)
        self._values = _buffer(memory_values, columns)

    def self_attention(self, attention: MultiHeadAttention, projected: Tensor) -> Tensor:
        """See ``LayerCache``."""
        q, k, v = attention.self_heads(projected)
        k, v = self._append(k, v)
        allowed = self._ancestry.allowed
        if attention.window:
            seen = slice(-(attention.window + 1) * q.size(2), None)
            k, v = k[:, :, seen], v[:, :, seen]
            allowed = None if allowed is None else allowed[..., seen]
        return attention.attend(q, k, v, allowed)[0]

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """See ``LayerCache``."""
        q = attention.heads(queries, attention.d_k)
        keys, values, allowed = self._memory_keys, self._memory_values, self._memory_allowed
        return attention.attend(q, keys, values, allowed, need_weights=need_weights)

    def _append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Takes up ``[B, H, k, K]``; returns all so far, ``[B, H, k * T, K]``, as views."""
        end = self._columns + k.size(2)
        if end > self._keys.size(2):
            capacity = max(end, 2 * self._keys.size(2))
            self._keys = _enlarged(self._keys, self._columns, capacity)
            self._values = _enlarged(self._values, self._columns, capacity)
        self._keys[:, :, self._columns : end] = k
        self._values[:, :, self._columns : end] = v
        self._columns = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was; also fewer or more of them."""
        moved: Tensor | None = None
        if sentences.numel() <= self._keys.size(0):  # in place, and most stay where they are
            stays = sentences == torch.arange(sentences.numel(), device=sentences.device)
            moved = (~stays).nonzero().squeeze(1)
        length = self._memory_keys.size(2)
        self._memory_keys = _selected(self._memory_keys, length, sentences, moved)
        self._memory_values = _selected(self._memory_values, length, sentences, moved)
        if self._memory_allowed is not None:
            self._memory_allowed = self._memory_allowed.index_select(0, sentences)
        self._keys = _selected(self._keys, self._columns, sentences, moved)
        self._values = _selected(self._values, self._columns, sentences, moved)


def _in_float32(keys: Tensor) -> bool:
    return keys.dtype == torch.bfloat16 and not keys.is_cuda


def _selected(buffer: Tensor, used: int, sentences: Tensor, moved: Tensor | None) -> Tensor:
    """The buffer of these sentences, whose first ``used`` columns hold something."""
    if moved is None:
        return buffer.index_select(0, sentences)
    kept = buffer[: sentences.numel()]
    kept[:, :, :used].index_copy_(0, moved, buffer[:, :, :used][sentences[moved]])
    return kept


def _buffer(like: Tensor, columns: int) -> Tensor:
    return like.new_empty(*like.shape[:2], columns, like.size(3))


def _enlarged(buffer: Tensor, used: int, capacity: int) -> Tensor:
    larger = _buffer(buffer, capacity)
    larger[:, :, :used] = buffer[:, :, :used]
    return larger
