"""Step-by-step decoding by compiled kernels: nothing that a decoder remembers is ever copied."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_float, c_int64, c_void_p

import torch
from torch import Tensor

from ...modules.attention import MultiHeadAttention, attention
from ...modules.decoder import Decoder
from ...modules.packing import Packing
from ...search.decoder_state import CachedDecoder, start_decoding
from ...search.kv_cache import KVCache
from ..plain_attention import is_equation_1
from ..registry import kernel
from . import library
from .library import SUFFIXES, address, kernels


class _Attention(ctypes.Structure):
    """``struct Attention``; strides count numbers, not bytes."""

    _fields_ = [
        *((name, c_int64) for name in ("queries", "heads", "d_k", "d_v")),
        *((name, c_int64) for name in ("query_stride", "row_stride", "out_stride")),
        ("scale", c_float),
    ]


def _supports(
    decoder: Decoder,
    memory: Tensor,
    packing: Packing,
    num_hypotheses: int = 1,
    need_weights: bool = False,
) -> bool:
    return (
        not need_weights
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and decoder.embed_tokens.weight.dtype == memory.dtype
        and all(
            is_equation_1(module) and library.is_supported(memory, module.d_k, module.d_v)
            for module in decoder.layers.modules()
            if isinstance(module, MultiHeadAttention)
        )
    )


@kernel(start_decoding, _supports, stands_for=[attention, MultiHeadAttention, KVCache])
def start(
    decoder: Decoder,
    memory: Tensor,
    packing: Packing,
    num_hypotheses: int = 1,
    need_weights: bool = False,
) -> CachedDecoder:
    """See ``start_decoding``."""
    projected = [layer.encoder_attention.project_memory(memory) for layer in decoder.layers]
    cache = TableCache(projected, packing)
    return CachedDecoder(decoder, cache)


class TableCache:
    """A KV cache (see ``KVCache``) as tables of rows.

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
        self.layers = [TableLayerCache(self, memory) for memory in memories]

    @property
    def room(self) -> int:
        """All positions so far, and that of the step being made, are below it."""
        return self.ancestors.size(2)

    def extend(self) -> Tensor:
        """Takes up a position of each live hypothesis, before the layers; its number, ``[1]``."""
        batch_size, width, position = self.ancestors.shape
        own = torch.arange(batch_size * width, dtype=torch.int32).view(batch_size, width, 1)
        self.ancestors = torch.cat([self.ancestors, own], dim=2)
        return torch.tensor([position])

    def reorder(self, parents: Tensor) -> None:
        """See ``DecoderState``."""
        index = parents.unsqueeze(2).expand(-1, -1, self.ancestors.size(2))
        self.ancestors = self.ancestors.gather(1, index)

    def select(self, sentences: Tensor) -> None:
        """See ``DecoderState``."""
        self.lengths, self.starts = self.lengths[sentences], self.starts[sentences]
        self.ancestors = self.ancestors[sentences]


class TableLayerCache:
    """One layer's (see ``KeyValues``).

    Args:
        cache: the tables, shared by all layers; it holds them, so they must not hold it.
        memory: keys and values of the encoder's output, ``[N_s, H * (K + d_v)]``.
    """

    def __init__(self, cache: TableCache, memory: Tensor) -> None:
        self._cache = weakref.proxy(cache)
        self.memory = memory.contiguous()
        self._suffix = SUFFIXES[memory.dtype]
        self.steps: list[Tensor] = []  # [B * k, H * (2 K + d_v)] each

    def self_attention(
        self, attention: MultiHeadAttention, projected: Tensor, need_weights: bool
    ) -> tuple[Tensor, None]:
        """See ``KeyValues``."""
        self.steps.append(projected.contiguous())
        steps = self.steps[-attention.window - 1 :] if attention.window else self.steps
        ancestors = self._cache.ancestors
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
        return out, None

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, None]:
        """See ``KeyValues``; without weights."""
        queries = queries.contiguous()
        out = queries.new_empty(*queries.shape[:2], attention.num_heads * attention.d_v)
        getattr(kernels(), f"attend_memory_{self._suffix}")(
            byref(_numbers(attention, queries, self.memory, out)),
            address(queries),
            address(out),
            c_int64(queries.size(1)),
            address(self.memory),
            address(self._cache.starts),
            address(self._cache.lengths),
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
