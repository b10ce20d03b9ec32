"""A KV cache with fixed tensor addresses, for steps that are recorded once and replayed."""

from __future__ import annotations

import math
import weakref

import torch
from torch import Tensor

from ...modules.multi_head_attention import MultiHeadAttention
from ...search.kv_cache import LayerCache, Memory, widened

_MULTIPLE = 8  # positions are rounded up to it: fused attention needs aligned masks


class StaticKVCache:
    """A KV cache (see ``KVCache``) with space for later positions: every step runs the same
    operations on the same tensors, with the current position in a tensor on the device.

    Call ``make_room`` before each step. Attention windows are not supported.

    Args:
        memories: the memory of each layer.
        num_hypotheses: live hypotheses of a sentence, k at most.
        positions: expected number of positions.
        longest: maximum number of positions.

    Attributes:
        version: changes whenever a tensor has moved, which invalidates a recording.
    """

    def __init__(
        self, memories: list[Memory], num_hypotheses: int, positions: int, longest: int
    ) -> None:
        keys = memories[0].keys
        self.version = 0
        self.num_hypotheses = num_hypotheses
        self._longest = longest
        self.width = 1
        self._made = 0  # positions in use, including that of the current step
        self._next = torch.zeros(1, dtype=torch.int64, device=keys.device)
        self._own = keys.new_full((num_hypotheses, num_hypotheses), -math.inf).fill_diagonal_(0.0)
        self._mask = keys.new_empty(keys.size(0), num_hypotheses, 0)  # [B, k, columns]
        self.layers = [StaticLayerCache(self, memory) for memory in memories]
        self._enlarge(positions)

    @property
    def allowed(self) -> Tensor:
        """``[B, 1, k, columns]``: 0 for columns that a hypothesis sees, else minus infinity."""
        return self._mask[:, : self.width].unsqueeze(1)

    def make_room(self) -> None:
        """Ensures room for one more position."""
        if self._made == self.room:
            self._enlarge(2 * self.room)
            self.version += 1
        self._made += 1

    def extend(self) -> Tensor:
        """See ``KVCache``."""
        live = torch.arange(self.width, device=self._next.device)
        self.columns = self._next * self.num_hypotheses + live  # columns of this position, [k]
        own = self._own[: self.width, : self.width].expand(self._mask.size(0), -1, -1)
        self._mask[:, : self.width].index_copy_(2, self.columns, own)
        position = self._next.clone()
        self._next += 1
        return position

    def reorder(self, parents: Tensor) -> None:
        """See ``KVCache``."""
        index = parents.unsqueeze(2).expand(-1, -1, self._mask.size(2))
        self.width = parents.size(1)
        self._mask[:, : self.width] = self._mask.gather(1, index)

    def select(self, sentences: Tensor) -> None:
        """See ``KVCache``."""
        self._mask = self._mask.index_select(0, sentences)
        for cache in self.layers:
            cache.select(sentences)
        self.version += 1

    def _enlarge(self, positions: int) -> None:
        self.room = min(-(-positions // _MULTIPLE) * _MULTIPLE, self._longest)
        columns = self.room * self.num_hypotheses
        new = self._mask.new_full((*self._mask.shape[:2], columns), -math.inf)
        new[..., : self._mask.size(2)] = self._mask
        self._mask = new
        for cache in self.layers:
            cache.enlarge(columns)


class StaticLayerCache(LayerCache):
    """One layer's keys and values: a column for each position and hypothesis.

    Args:
        cache: has the columns of a step; referenced weakly, because it references its layers.
        memory: the layer's keys and values of the encoder's output.
    """

    def __init__(self, cache: StaticKVCache, memory: Memory) -> None:
        self._cache = weakref.proxy(cache)
        super().__init__(memory, 0, self._cache)

    def self_attention(
        self, attention: MultiHeadAttention, projected: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """See ``KeyValues``."""
        q, k, v = attention.self_heads(projected)
        self._keys.index_copy_(2, self._cache.columns, k.to(self._keys.dtype))
        self._values.index_copy_(2, self._cache.columns, v.to(self._values.dtype))
        return attention.attend(q, self._keys, self._values, self._cache.allowed)

    def enlarge(self, columns: int) -> None:
        """Widens the buffers to ``columns``."""
        self._keys, self._values = widened(self._keys, columns), widened(self._values, columns)
