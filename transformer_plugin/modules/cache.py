"""What a decoder remembers of the positions before, in step-by-step decoding."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_FIRST_CAPACITY = 32  # columns, where nothing better is known; doubled whenever they are full


class LayerCache:
    """Keys and values of one decoder layer, for k hypotheses of each sentence.

    Target keys lie side by side, position by position and hypothesis by hypothesis, in a buffer
    that is never reordered: which of them a hypothesis may see is told by ``Ancestry``.

    Args:
        memory_keys: of the encoder's output, ``[B, H, S, K]``, projected once.
        memory_values: ``[B, H, S, d_v]``.
        memory_allowed: ``[B, 1, 1, S]``, True = may be seen; None where all may.
        columns: how many are likely to be needed.
    """

    def __init__(
        self,
        memory_keys: Tensor,
        memory_values: Tensor,
        memory_allowed: Tensor | None = None,
        columns: int = _FIRST_CAPACITY,
    ) -> None:
        if memory_keys.dtype == torch.bfloat16 and not memory_keys.is_cuda:
            # Attention is in float32 there; so the cache is not converted at each step.
            memory_keys, memory_values = memory_keys.float(), memory_values.float()
        self.memory_keys = memory_keys.contiguous()
        self.memory_values = memory_values.contiguous()
        if memory_allowed is not None:  # as what is added to the scores, once for all steps
            hidden = memory_keys.new_full((), -math.inf)
            memory_allowed = torch.where(memory_allowed, 0.0, hidden)
        self.memory_allowed = memory_allowed
        self.columns = 0
        self._keys = _buffer(memory_keys, columns)
        self._values = _buffer(memory_values, columns)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Takes up one position of k hypotheses, ``[B, H, k, K]``.

        Returns:
            All keys and values so far, ``[B, H, k * T, K]``, views of the buffers.
        """
        end = self.columns + k.size(2)
        if end > self._keys.size(2):
            capacity = max(end, 2 * self._keys.size(2))
            self._keys = _enlarged(self._keys, self.columns, capacity)
            self._values = _enlarged(self._values, self.columns, capacity)
        self._keys[:, :, self.columns : end] = k
        self._values[:, :, self.columns : end] = v
        self.columns = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was; also fewer or more of them."""
        moved: Tensor | None = None
        if sentences.numel() <= self._keys.size(0):  # in place, and most stay where they are
            stays = sentences == torch.arange(sentences.numel(), device=sentences.device)
            moved = (~stays).nonzero().squeeze(1)
        length = self.memory_keys.size(2)
        self.memory_keys = _selected(self.memory_keys, length, sentences, moved)
        self.memory_values = _selected(self.memory_values, length, sentences, moved)
        if self.memory_allowed is not None:
            self.memory_allowed = self.memory_allowed.index_select(0, sentences)
        self._keys = _selected(self._keys, self.columns, sentences, moved)
        self._values = _selected(self._values, self.columns, sentences, moved)


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


class Ancestry:
    """Which cached columns belong to each hypothesis: its own past, position by position.

    Args:
        batch_size: sentences, B; each starts with one hypothesis.
        like: gives dtype and device.
    """

    def __init__(self, batch_size: int, like: Tensor) -> None:
        self._mask = like.new_empty(batch_size, 1, 0)

    def extend(self) -> Tensor:
        """Adds a position of each of the k hypotheses; returns the mask, ``[B, 1, k, columns]``:
        0 where a hypothesis may see, minus infinity elsewhere."""
        batch_size, width, _ = self._mask.shape
        own = self._mask.new_full((width, width), -math.inf).fill_diagonal_(0.0)
        self._mask = torch.cat([self._mask, own.expand(batch_size, -1, -1)], dim=2)
        return self._mask.unsqueeze(1)

    def follow(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was; ``[B, k]``, of any k."""
        index = parents.unsqueeze(2).expand(-1, -1, self._mask.size(2))
        self._mask = self._mask.gather(1, index)

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was."""
        self._mask = self._mask.index_select(0, sentences)
