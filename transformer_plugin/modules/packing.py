"""Where the real tokens of a padded batch are, so that no layer computes on padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """The layout of B sentences of different lengths as N = sum(lengths) consecutive rows.

    Projections, feed-forward networks, norms and dropout work on packed rows ``[N, ...]``; only
    the attention product needs the rectangle ``[B, L, ...]``, padded on the right.

    Attributes:
        batch_size: B.
        max_length: L, the longest length the rectangle holds.
        lengths: real tokens of each sentence, ``[B]``, int64.
        positions: place of each packed token in its sentence, from 0, ``[N]``, int64.
        index: row of each packed token in the flattened rectangle, ``[N]``; None where the
            rectangle has no padding, so that packing is a change of view.
        padding_mask: ``[B, L]``, True = padding; None where there is none.
    """

    batch_size: int
    max_length: int
    lengths: Tensor
    positions: Tensor
    index: Tensor | None
    padding_mask: Tensor | None

    @classmethod
    def of_lengths(cls, lengths: Tensor, max_length: int) -> Packing:
        """The packing of sentences of these lengths, ``[B]``, none above ``max_length``."""
        batch_size = lengths.size(0)
        place = torch.arange(max_length, device=lengths.device).expand(batch_size, max_length)
        padding_mask = place >= lengths.unsqueeze(1)
        index = (~padding_mask).flatten().nonzero().squeeze(1)
        if index.numel() == batch_size * max_length:
            return cls(batch_size, max_length, lengths, place.flatten(), None, None)
        positions = place.flatten()[index]
        return cls(batch_size, max_length, lengths, positions, index, padding_mask)

    @classmethod
    def of_tokens(cls, tokens: Tensor, padding_idx: int) -> tuple[Tensor, Packing]:
        """Packs token ids ``[B, L]``, padded on either side, into ``[N]``, and says how."""
        real = tokens.ne(padding_idx)
        packing = cls.of_lengths(real.sum(dim=1), tokens.size(1))
        return (tokens.flatten() if packing.index is None else tokens[real]), packing

    @property
    def allowed(self) -> Tensor | None:
        """Keys that are real, ``[B, 1, 1, L]``, True = may be seen; None where all are."""
        return None if self.padding_mask is None else ~self.padding_mask[:, None, None, :]

    def pad(self, rows: Tensor) -> Tensor:
        """``[N, ...]`` to the rectangle ``[B, L, ...]``, zero where padding is."""
        shape = (self.batch_size, self.max_length, *rows.shape[1:])
        if self.index is None:
            return rows.view(shape)
        flat = rows.new_zeros(shape[0] * shape[1], *shape[2:])
        return flat.index_copy(0, self.index, rows).view(shape)

    def pack(self, rectangle: Tensor) -> Tensor:
        """The rectangle ``[B, L, ...]`` to the rows of its real tokens, ``[N, ...]``."""
        flat = rectangle.flatten(0, 1)
        return flat if self.index is None else flat.index_select(0, self.index)
