"""What a decoder remembers, for the compiled kernels: nothing of it is ever copied."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import byref, c_float, c_int64, c_void_p

import torch
from torch import Tensor

from . import compiled
from .attention import MultiHeadAttention
from .compiled import SUFFIXES, address, kernels
from .packing import Packing


class _Attention(ctypes.Structure):
    """``struct Attention``; strides count numbers, not bytes."""

    _fields_ = [
        *((name, c_int64) for name in ("queries", "heads", "d_k", "d_v")),
        *((name, c_int64) for name in ("query_stride", "row_stride", "out_stride")),
        ("scale", c_float),
    ]


def is_supported(attention: MultiHeadAttention, memory: Tensor) -> bool:
    """Whether the kernels can do this attention over memory of this kind."""
    return attention.score.is_plain and compiled.is_supported(memory, attention.d_k, attention.d_v)


class CompiledPast:
    """A past (see ``Past``) as tables of rows.

    The rows of a step stay where their projection put them; what a hypothesis sees is told by
    the number of its own row at each step, and of the encoder's output by its first row and
    its length.

    Args:
        memories: the packed encoder output's keys and values, ``[N_s, H * (K + d_v)]``, one a
            layer.
        packing: their layout.
    """

    def __init__(self, memories: list[Tensor], packing: Packing) -> None:
        self.lengths = packing.lengths
        self.starts = packing.lengths.cumsum(0) - packing.lengths  # first row of each sentence
        self.ancestors = torch.empty(packing.batch_size, 1, 0, dtype=torch.int32)  # [B, k, T]
        self.layers = [CompiledCache(self, memory) for memory in memories]
        # Where a kernel makes all of a step: the layers, from x [B, k, D] to [B, k, D].
        self.whole_step: Callable[[Tensor, CompiledPast], Tensor] | None = None

    @property
    def room(self) -> int:
        """See ``Past``."""
        return self.ancestors.size(2)

    def extend(self) -> Tensor:
        """See ``Past``."""
        batch_size, width, position = self.ancestors.shape
        own = torch.arange(batch_size * width, dtype=torch.int32).view(batch_size, width, 1)
        self.ancestors = torch.cat([self.ancestors, own], dim=2)
        return torch.tensor([position])

    def follow(self, parents: Tensor) -> None:
        """See ``Past``."""
        index = parents.unsqueeze(2).expand(-1, -1, self.ancestors.size(2))
        self.ancestors = self.ancestors.gather(1, index)

    def select(self, sentences: Tensor) -> None:
        """See ``Past``."""
        self.lengths, self.starts = self.lengths[sentences], self.starts[sentences]
        self.ancestors = self.ancestors[sentences]


class CompiledCache:
    """One layer's (see ``LayerCache``).

    Args:
        past: the tables, shared by all layers; it holds them, so they must not hold it.
        memory: keys and values of the encoder's output, ``[N_s, H * (K + d_v)]``.
    """

    def __init__(self, past: CompiledPast, memory: Tensor) -> None:
        self._past = weakref.proxy(past)
        self.memory = memory.contiguous()
        self._suffix = SUFFIXES[memory.dtype]
        self.steps: list[Tensor] = []  # [B * k, H * (2 K + d_v)] each

    def self_attention(self, attention: MultiHeadAttention, projected: Tensor) -> Tensor:
        """See ``LayerCache``."""
        self.steps.append(projected.contiguous())
        steps = self.steps[-attention.window - 1 :] if attention.window else self.steps
        ancestors = self._past.ancestors
        first = ancestors[:, :, -len(steps) :]
        width_k = attention.num_heads * attention.d_k
        out = projected.new_empty(*projected.shape[:2], attention.num_heads * attention.d_v)
        getattr(kernels(), f"attend_past_{self._suffix}")(
            byref(_numbers(attention, projected, steps[-1], out)),
            address(steps[-1]),
            address(out),
            c_int64(len(steps)),
            (c_void_p * len(steps))(*(rows.data_ptr() for rows in steps)),
            address(first),
            c_int64(ancestors.size(2)),
            c_int64(width_k),
            c_int64(2 * width_k),
        )
        return out

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """See ``LayerCache``; without weights.

        Raises:
            ValueError: weights are asked for.
        """
        if need_weights:
            raise ValueError("the compiled attention keeps no weights")
        queries = queries.contiguous()
        out = queries.new_empty(*queries.shape[:2], attention.num_heads * attention.d_v)
        getattr(kernels(), f"attend_memory_{self._suffix}")(
            byref(_numbers(attention, queries, self.memory, out)),
            address(queries),
            address(out),
            c_int64(queries.size(1)),
            address(self.memory),
            address(self._past.starts),
            address(self._past.lengths),
        )
        return out, None


def _numbers(attention: MultiHeadAttention, q: Tensor, rows: Tensor, out: Tensor) -> _Attention:
    return _Attention(
        q.size(0) * q.size(1),
        attention.num_heads,
        attention.d_k,
        attention.d_v,
        q.size(-1),
        rows.size(-1),
        out.size(-1),
        attention.score.scale,
    )
