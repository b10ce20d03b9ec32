"""A KV cache that grows as needed; a mask marks the columns that belong to each hypothesis."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..modules.attention import Positions, position_mask
from ..modules.multi_head_attention import MultiHeadAttention
from ..modules.packing import Packing

ONE_POSITION = (
    "a layer took more than one position in a step of the search: to run it twice, put it into"
    " decoder.layers twice"
)


class KVCache:
    """Keys and values of k hypotheses for each of B sentences, in all layers.

    The buffers are never reordered.

    Args:
        memories: each layer's keys and values of the encoder's output.
        columns: expected number of columns; doubled whenever they are full.
    """

    def __init__(self, memories: list[Memory], columns: int) -> None:
        self._ancestry = Ancestry(memories[0].keys)
        self.layers = [LayerCache(memory, columns, self._ancestry) for memory in memories]
        self.room = 0  # exceeds all positions so far, including that of the current step
        self._next = torch.zeros(1, dtype=torch.int64, device=memories[0].keys.device)

    @property
    def width(self) -> int:
        """See ``Ancestry``."""
        return self._ancestry.width

    def extend(self) -> Tensor:
        """Adds a position for each live hypothesis, before the layers do; returns its number, from
        0, ``[1]``."""
        position, self._next = self._next, self._next + 1
        self._ancestry.extend(position)
        self.room += 1
        return position

    def reorder(self, parents: Tensor) -> None:
        """Replaces hypothesis j by hypothesis ``parents[:, j]``, ``[B, k]``."""
        self._ancestry.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """Replaces sentence i by sentence ``sentences[i]``; their number may change."""
        self._ancestry.select(sentences)
        for cache in self.layers:
            cache.select(sentences)


class Memory:
    """One decoder layer's keys and values of the encoder's output, projected once for all steps.

    Args:
        keys: ``[B, H, S, K]``.
        values: ``[B, H, S, d_v]``.
        packing: layout of the encoder's output.
    """

    def __init__(self, keys: Tensor, values: Tensor, packing: Packing) -> None:
        self.keys, self.values = keys.contiguous(), values.contiguous()
        self.allowed = packing.allowed
        if self.allowed is not None:  # additive, for the scores
            self.allowed = torch.where(self.allowed, 0.0, keys.new_full((), -math.inf))

    @classmethod
    def of(cls, attention: MultiHeadAttention, memory: Tensor, packing: Packing) -> Memory:
        """Projects the encoder's packed output, ``[N_s, D]``, for a layer's attention."""
        return cls(*attention.memory_heads(packing.pad(attention.project_memory(memory))), packing)

    def attend(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The context ``[B, k, H * d_v]`` of queries ``[B, k, H * K]`` and, if needed, the weights
        ``[B, H, k, S]``."""
        q = attention.heads(queries, attention.d_k)
        return attention.attend(q, self.keys, self.values, self.allowed, need_weights)

    def select(self, sentences: Tensor) -> None:
        """Replaces sentence i by sentence ``sentences[i]``; their number may change."""
        self.keys = self.keys.index_select(0, sentences)
        self.values = self.values.index_select(0, sentences)
        if self.allowed is not None:
            self.allowed = self.allowed.index_select(0, sentences)


class Ancestry:
    """Which cached columns belong to each hypothesis: one for each of its positions.

    Args:
        like: keys with the type, device and number of sentences; each sentence starts with one
            hypothesis.

    Attributes:
        positions: position of each column in its sentence, ``[columns]``.
    """

    def __init__(self, like: Tensor) -> None:
        self._mask = like.new_empty(like.size(0), 1, 0)
        self._all_own = True
        self.positions = torch.empty(0, dtype=torch.int64, device=like.device)

    @property
    def width(self) -> int:
        """The number of live hypotheses of each sentence, k."""
        return self._mask.size(1)

    @property
    def allowed(self) -> Tensor | None:
        """``[B, 1, k, columns]``: 0 for columns that a hypothesis sees, minus infinity for others;
        None if it sees all."""
        return None if self._all_own else self._mask.unsqueeze(1)

    def extend(self, position: Tensor) -> None:
        """Adds a position, ``[1]``, for each of the k hypotheses."""
        batch_size, width, _ = self._mask.shape
        self.positions = torch.cat([self.positions, position.expand(width)])
        self._all_own = self._all_own and width == 1
        own = self._mask.new_full((width, width), -math.inf).fill_diagonal_(0.0)
        self._mask = torch.cat([self._mask, own.expand(batch_size, -1, -1)], dim=2)

    def reorder(self, parents: Tensor) -> None:
        """Replaces hypothesis j by hypothesis ``parents[:, j]``, ``[B, k]``, for any k."""
        index = parents.unsqueeze(2).expand(-1, -1, self._mask.size(2))
        self._mask = self._mask.gather(1, index)

    def select(self, sentences: Tensor) -> None:
        """Replaces sentence i by sentence ``sentences[i]``."""
        self._mask = self._mask.index_select(0, sentences)


class LayerCache:
    """One layer's keys and values (see ``KeyValues``): for each position, a column for each
    hypothesis.

    Args:
        memory: the layer's keys and values of the encoder's output.
        columns: expected number of columns.
        ancestry: which columns a hypothesis sees; shared by all layers.
    """

    def __init__(self, memory: Memory, columns: int, ancestry: Ancestry) -> None:
        self._ancestry = ancestry
        self._memory = memory
        self._columns = 0
        self._expected = columns
        self._keys, self._values = memory.keys[:, :, :0], memory.values[:, :, :0]

    def self_attention(
        self, attention: MultiHeadAttention, projected: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Adds a position, ``[B, k, H * (2 K + d_v)]``, and attends; returns no weights."""
        q, k, v = attention.self_heads(projected)
        k, v = self._append(k, v)
        own, columns = self._ancestry.allowed, self._ancestry.positions
        if k.size(2) != columns.size(0):
            raise ValueError(ONE_POSITION)
        positions = Positions(columns[-q.size(2) :], columns)
        near = position_mask(positions, causal=True, window=attention.window)
        allowed = near if own is None else own.masked_fill(~near, -math.inf)
        return attention.attend(q, k, v, allowed, positions=positions)

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """See ``Memory.attend``."""
        return self._memory.attend(attention, queries, need_weights)

    def _append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Appends ``[B, H, k, K]``; returns views of all so far, ``[B, H, k * T, K]``."""
        if self._columns == 0:  # their heads may differ from those of the encoder's output
            self._keys, self._values = k[:, :, :0], v[:, :, :0]
        end = self._columns + k.size(2)
        if end > self._keys.size(2):
            capacity = max(end, 2 * self._keys.size(2), self._expected)
            self._keys = widened(self._keys, capacity)
            self._values = widened(self._values, capacity)
        self._keys[:, :, self._columns : end] = k
        self._values[:, :, self._columns : end] = v
        self._columns = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def select(self, sentences: Tensor) -> None:
        """Replaces sentence i by sentence ``sentences[i]``; their number may change."""
        self._memory.select(sentences)
        self._keys = self._keys.index_select(0, sentences)
        self._values = self._values.index_select(0, sentences)


def widened(buffer: Tensor, columns: int) -> Tensor:
    """``[B, H, c, K]`` widened to ``columns`` by zeros: masked values must not be NaN."""
    wider = buffer.new_zeros(*buffer.shape[:2], columns, buffer.size(3))
    wider[:, :, : buffer.size(2)] = buffer
    return wider
