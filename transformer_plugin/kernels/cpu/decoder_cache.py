"""Step-by-step decoding with compiled kernels; cached keys and values are never copied. Without it
a search takes 1.84 times as long in fp32, 1.87 in bf16 (``bench/kernels.py``)."""

from __future__ import annotations

import copy
import ctypes
import weakref
from array import array
from collections.abc import Sequence
from ctypes import byref, c_float, c_int64, c_void_p

import torch
from torch import Tensor

from ...modules.attention import attention
from ...modules.decoder import Decoder
from ...modules.layers import DecoderLayer
from ...modules.multi_head_attention import MultiHeadAttention
from ...modules.operation import is_exactly
from ...modules.packing import Packing
from ...modules.stack import Stack
from ...search.decoder_state import CachedDecoder, start_decoding
from ...search.kv_cache import ONE_POSITION, KVCache
from ..plain_modules import is_equation_1
from ..registry import kernel
from . import library
from .library import address, function


class Attention(ctypes.Structure):
    """``struct Attention``; strides count elements, not bytes."""

    _fields_ = [
        *((name, c_int64) for name in ("queries", "heads", "d_k", "d_v")),
        *((name, c_int64) for name in ("query_stride", "row_stride")),
        *((name, c_int64) for name in ("group", "positions", "group_stride", "position_stride")),
        *((name, c_void_p) for name in ("keys", "row_numbers", "lengths")),
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
        and memory.size(0) == packing.positions.numel()
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and next(decoder.parameters()).dtype == memory.dtype
        # Another one may ask for the weights of attention.
        and getattr(decoder.through_layers, "__func__", None) is Stack.through_layers
        and all(is_exactly(layer, DecoderLayer) for layer in decoder.layers)
        and all(
            is_equation_1(each)
            and each.encoder_decoder == (each is layer.encoder_attention)
            and library.is_supported(memory, each.d_k, each.d_v)
            for layer in decoder.layers
            for each in (layer.self_attention, layer.encoder_attention)
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
    return CachedDecoder(decoder, TableCache(projected, packing))


class TableCache:
    """A KV cache (see ``KVCache``) as tables of rows.

    The rows of a step are not moved. A table holds the row of each hypothesis at each step; each
    sentence has its first row of the encoder's output and its length.

    Args:
        memories: each layer's keys and values of the packed encoder output,
            ``[N_s, H * (K + d_v)]``.
        packing: their layout.
    """

    def __init__(self, memories: list[Tensor], packing: Packing) -> None:
        self.lengths = packing.lengths.long().contiguous()
        self.starts = packing.offsets[:-1]  # first row of each sentence
        shape = (packing.batch_size, 1, 0)  # [B, k, T]
        self.ancestors = memories[0].new_empty(shape, dtype=torch.int32)
        self.layers = [TableLayerCache(self, memory, packing.max_length) for memory in memories]

    def __deepcopy__(self, _memo: object) -> TableCache:
        """Shares the tensors, which never change: copies of pointers to them stay valid."""
        copied = copy.copy(self)
        copied.layers = [copy.copy(layer) for layer in self.layers]
        for layer in copied.layers:
            layer._cache, layer.steps = weakref.proxy(copied), layer.steps.copy()
            layer._keys = layer._keys[:]
        return copied

    @property
    def room(self) -> int:
        """Exceeds all positions so far, including that of the current step."""
        return self.ancestors.size(2)

    @property
    def width(self) -> int:
        """The number of live hypotheses of each sentence, k."""
        return self.ancestors.size(1)

    def extend(self) -> Tensor:
        """Adds a position for each live hypothesis, before the layers; its number, ``[1]``."""
        batch_size, width, position = self.ancestors.shape
        device = self.ancestors.device
        own = torch.arange(batch_size * width, dtype=torch.int32, device=device)
        self.ancestors = torch.cat([self.ancestors, own.view(batch_size, width, 1)], dim=2)
        return torch.tensor([position], device=device)

    def reorder(self, parents: Tensor) -> None:
        """See ``DecoderState``."""
        index = parents.unsqueeze(2).expand(-1, -1, self.ancestors.size(2))
        self.ancestors = self.ancestors.gather(1, index)

    def select(self, sentences: Tensor) -> None:
        """See ``DecoderState``."""
        self.lengths, self.starts = self.lengths[sentences], self.starts[sentences]
        self.ancestors = self.ancestors[sentences]


class TableLayerCache:
    """One layer's keys and values (see ``KeyValues``).

    Args:
        cache: the tables, shared by all layers; referenced weakly, because it references them.
        memory: keys and values of the encoder's output, ``[N_s, H * (K + d_v)]``.
        max_length: length of the longest source sentence.
    """

    def __init__(self, cache: TableCache, memory: Tensor, max_length: int) -> None:
        self._cache = weakref.proxy(cache)
        self.memory = memory.contiguous()
        row = self.memory.stride(0) * memory.element_size()
        first = self.memory.data_ptr()
        self._memory_keys = (c_void_p * max_length)(*range(first, first + max_length * row, row))
        self.steps: list[Tensor] = []  # [B * k, H * (2 K + d_v)] each
        self._keys = array("Q")  # the addresses of their keys

    def self_attention(
        self, attention: MultiHeadAttention, projected: Tensor, need_weights: bool
    ) -> tuple[Tensor, None]:
        """See ``KeyValues``."""
        if projected.dtype != self.memory.dtype:  # as under autocast
            context, _ = self.self_attention(attention, projected.to(self.memory.dtype), False)
            return context.to(projected.dtype), None
        own = self.own_attention(attention, projected.shape)
        self.steps.append(projected.contiguous())
        self._keys[-1] = self.steps[-1].data_ptr() + own.heads * own.d_k * projected.element_size()
        return _attend(own, self.steps[-1]), None

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, None]:
        """See ``KeyValues``; without weights."""
        if queries.dtype != self.memory.dtype:
            context, _ = self.encoder_attention(attention, queries.to(self.memory.dtype), False)
            return context.to(queries.dtype), None
        return _attend(self.memory_attention(attention, queries.shape), queries.contiguous()), None

    def own_attention(self, attention: MultiHeadAttention, shape: Sequence[int]) -> Attention:
        """Attention over the positions so far, of which the newest, of this shape, is to be put
        into ``steps``, and the address of its keys into ``Attention.keys``."""
        ancestors = self._cache.ancestors
        if len(self.steps) + 1 != self._cache.room:
            raise ValueError(ONE_POSITION)
        if shape[0] != len(ancestors):
            raise ValueError(f"tokens of {shape[0]} sentences, not {len(ancestors)}")
        _check_width(shape[-1], attention.num_heads * (2 * attention.d_k + attention.d_v))
        self._keys.append(0)
        first = max(0, len(self.steps) - attention.window) if attention.window else 0
        keys = self._keys.buffer_info()[0] + first * self._keys.itemsize
        row_numbers = ancestors.data_ptr() + first * ancestors.element_size()
        numbers = _attention(attention, shape, keys, row_numbers)
        numbers.group, numbers.positions = 1, len(self._keys) - first
        numbers.row_stride = shape[-1]
        numbers.group_stride, numbers.position_stride = ancestors.size(2), 1
        return numbers

    def memory_attention(self, attention: MultiHeadAttention, shape: Sequence[int]) -> Attention:
        """Attention of queries of this shape over the encoder's output."""
        keys = ctypes.addressof(self._memory_keys)
        _check_width(self.memory.size(-1), attention.num_heads * (attention.d_k + attention.d_v))
        _check_width(shape[-1], attention.num_heads * attention.d_k)
        numbers = _attention(attention, shape, keys, self._cache.starts.data_ptr())
        numbers.group, numbers.row_stride = shape[1], self.memory.size(-1)
        numbers.lengths, numbers.group_stride = self._cache.lengths.data_ptr(), 1
        return numbers


def _check_width(found: int, expected: int) -> None:
    """Refuses projections that C++ would read beyond their rows."""
    if found != expected:
        raise RuntimeError(f"an attention's linear map gives {found} numbers, not {expected}")


def _attention(
    attention: MultiHeadAttention, shape: Sequence[int], keys: int, row_numbers: int
) -> Attention:
    numbers = Attention(keys=keys, row_numbers=row_numbers)
    numbers.queries, numbers.query_stride = shape[0] * shape[1], shape[2]
    numbers.heads, numbers.d_k, numbers.d_v = attention.num_heads, attention.d_k, attention.d_v
    numbers.scale = attention.score.scale
    return numbers


def _attend(numbers: Attention, q: Tensor) -> Tensor:
    """The context of queries ``[B, k, H * K or wider]`` (see ``attend_rows`` in C++)."""
    out = q.new_empty(*q.shape[:2], numbers.heads * numbers.d_v)
    function("attend_rows", q.dtype)(byref(numbers), address(q), address(out))
    return out
