"""Removal of padding: layers compute on the real tokens of a batch only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

from .operation import operation


@dataclass(frozen=True)
class Packing:
    """The layout of B sentences of different lengths as N = sum(lengths) consecutive rows.

    Projections, feed-forward networks, norms and dropout work on packed rows ``[N, ...]``; only
    the attention product needs the rectangle ``[B, L, ...]``, padded on the right.

    Idle rows may follow the real ones, so that N takes few different values. They affect neither
    real rows nor gradients.

    Attributes:
        batch_size: B.
        max_length: L, the width of the rectangle.
        lengths: real tokens of each sentence, ``[B]``, int64.
        positions: position of each packed token in its sentence, from 0, ``[N]``, int64.
        index: row of each packed token in the flattened rectangle, ``[N]``, B * L for an idle
            one; None if packing only changes the view.
        padding_mask: ``[B, L]``, True = padding; None = no padding.
    """

    batch_size: int
    max_length: int
    lengths: Tensor
    positions: Tensor
    index: Tensor | None
    padding_mask: Tensor | None

    @classmethod
    def of_lengths(cls, lengths: Tensor, max_length: int, multiple: int = 1) -> Packing:
        """The packing of sentences of these lengths, ``[B]``, none above ``max_length``.

        Args:
            multiple: idle rows round N up to a multiple of it.
        """
        batch_size = lengths.size(0)
        size = batch_size * max_length
        place = torch.arange(max_length, device=lengths.device).expand(batch_size, max_length)
        real = place < lengths.unsqueeze(1)
        index = real.flatten().nonzero().squeeze(1)
        idle = -index.numel() % multiple
        padding_mask = None if index.numel() == size else ~real
        if padding_mask is None and idle == 0:
            return cls(batch_size, max_length, lengths, place.flatten(), None, None)
        positions = place.flatten()[index]
        if idle:
            positions, index = F.pad(positions, (0, idle)), F.pad(index, (0, idle), value=size)
        return cls(batch_size, max_length, lengths, positions, index, padding_mask)

    @cached_property
    def offsets(self) -> Tensor:
        """First row of each sentence, and the row after the last one, ``[B + 1]``, int32."""
        return F.pad(self.lengths.cumsum(0, dtype=torch.int32), (1, 0))

    @property
    def allowed(self) -> Tensor | None:
        """The real keys, ``[B, 1, 1, L]``, True = visible; None if all are real."""
        return None if self.padding_mask is None else ~self.padding_mask[:, None, None, :]

    def pad(self, rows: Tensor) -> Tensor:
        """``[N, ...]`` to the rectangle ``[B, L, ...]``, with zeros for padding."""
        shape = (self.batch_size, self.max_length, *rows.shape[1:])
        if self.index is None:
            return rows.view(shape)
        size = self.batch_size * self.max_length
        flat = rows.new_zeros(size + 1, *shape[2:])  # the last row takes the idle rows
        return flat.index_copy_(0, self.index, rows)[:size].view(shape)

    def pack(self, rectangle: Tensor) -> Tensor:
        """The rectangle ``[B, L, ...]`` to rows ``[N, ...]``: those of its real tokens, then a copy
        of its last place for each idle row."""
        flat = rectangle.flatten(0, 1)
        if self.index is None:
            return flat
        return flat.index_select(0, self.index.clamp_max(flat.size(0) - 1))


@operation
def pack_tokens(tokens: Tensor, padding_idx: int, multiple: int = 1) -> tuple[Tensor, Packing]:
    """Packs token ids ``[B, L]``, padded on either side, into ``[N]``; returns the packing."""
    real = tokens.ne(padding_idx)
    packing = Packing.of_lengths(real.sum(dim=1), tokens.size(1), multiple)
    rows = tokens.masked_select(real)
    return F.pad(rows, (0, packing.positions.numel() - rows.numel())), packing


@operation
def prepare_packing(tokens: Tensor, original: Tensor, padding_idx: int) -> None:
    """Prepares ``pack_tokens(tokens, padding_idx)``; the plain version does nothing.

    Args:
        tokens: a copy of ``original``, ``[B, L]``, on the device that will pack it.
    """


def remove_padding(x: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor, Packing]:
    """Packs ``[B, L, ...]`` into ``[N, ...]``; returns the rows and the packing.

    Args:
        padding_mask: ``[B, L]``, True = padding, on either side; None = no padding.

    Raises:
        TypeError: the mask is not boolean; ``~`` and indices mean something else for numbers.
    """
    if padding_mask is None:
        batch_size, length = x.shape[:2]
        lengths = torch.full((batch_size,), length, device=x.device)
        places = torch.arange(length, device=x.device).repeat(batch_size)
        return x.flatten(0, 1), Packing(batch_size, length, lengths, places, None, None)
    if padding_mask.dtype != torch.bool:
        raise TypeError(f"padding_mask is {padding_mask.dtype}: give padding_mask.bool()")
    real = ~padding_mask
    return x[real], Packing.of_lengths(real.sum(dim=1), x.size(1))


def pad_like(rows: Tensor, packing: Packing, padding_mask: Tensor | None) -> Tensor:
    """``[N, ...]`` to ``[B, L, ...]``, with zeros for padding, wherever that is.

    Args:
        padding_mask: ``[B, L]``, True = padding; None = no padding.
    """
    if packing.index is None or padding_mask is None:
        return packing.pad(rows)
    size, idle = padding_mask.numel(), packing.index == padding_mask.numel()
    # The places of real tokens come first. Unlike indexing with a mask, sorting needs no
    # synchronisation with the GPU.
    places = padding_mask.flatten().byte().argsort(stable=True)
    index = F.pad(places, (0, rows.size(0) - size)).masked_fill(idle, size)
    return replace(packing, index=index).pad(rows)
