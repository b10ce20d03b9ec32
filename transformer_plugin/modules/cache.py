"""What a decoder layer remembers of the positions before, in step-by-step decoding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class LayerCache:
    """Keys and values of one decoder layer; grows by one position a step.

    Attributes:
        memory_keys: of the encoder's output, ``[B, H, S, K]``, projected once.
        memory_values: ``[B, H, S, d_v]``.
        memory_padding_mask: ``[B, S]``, True = padding; None where there is none.
        keys: of the target positions so far, ``[B, H, T, K]``; None before the first.
        values: ``[B, H, T, d_v]``.
    """

    memory_keys: Tensor
    memory_values: Tensor
    memory_padding_mask: Tensor | None = None
    keys: Tensor | None = None
    values: Tensor | None = None

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Takes up one position ``[B, H, 1, K]``; returns all keys and values, and their mask."""
        self.keys = k if self.keys is None else torch.cat([self.keys, k], dim=2)
        self.values = v if self.values is None else torch.cat([self.values, v], dim=2)
        return self.keys, self.values, None

    def reorder(self, order: Tensor) -> None:
        """Makes sentence i what sentence ``order[i]`` was; ``order`` may be of another size."""
        self.memory_keys = self.memory_keys.index_select(0, order)
        self.memory_values = self.memory_values.index_select(0, order)
        if self.memory_padding_mask is not None:
            self.memory_padding_mask = self.memory_padding_mask.index_select(0, order)
        if self.keys is not None and self.values is not None:
            self.keys = self.keys.index_select(0, order)
            self.values = self.values.index_select(0, order)
