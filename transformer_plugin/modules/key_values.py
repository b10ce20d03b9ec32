"""The keys and values of a layer: whole sentences here, a KV cache in step-by-step decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor

from .attention import Positions, position_mask
from .operation import operation
from .packing import Packing

if TYPE_CHECKING:
    from .multi_head_attention import MultiHeadAttention


class KeyValues(Protocol):
    """Keys and values of the sentences of a batch, as one layer sees them."""

    def self_attention(
        self, attention: MultiHeadAttention, projected: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The context ``[..., H * d_v]`` of the queries in ``projected``, which holds queries, keys
        and values, ``[..., H * (2 K + d_v)]``; if needed, the weights ``[B, H, T, T]``."""

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The context ``[..., H * d_v]`` of ``queries``, ``[..., H * K]``, over the encoder's
        output; if needed, the weights ``[B, H, T, S]``."""


class Layout(NamedTuple):
    """The layout of queries and keys, and which keys a query may see.

    Attributes:
        queries: layout of the queries' rows.
        keys: layout of the rows of keys and values.
        causal: position i of a sentence sees its positions up to i (section 3.2.3).
    """

    queries: Packing
    keys: Packing
    causal: bool = False


class WholeSentences:
    """All positions at once, as in the encoder and in training.

    Args:
        packing: layout of the queries' rows.
        causal: position i of a sentence sees its positions up to i (section 3.2.3).
        memory: packed encoder output, ``[N_s, D]``.
        memory_packing: its layout.
    """

    def __init__(
        self,
        packing: Packing,
        causal: bool = False,
        memory: Tensor | None = None,
        memory_packing: Packing | None = None,
    ) -> None:
        self.packing, self.causal = packing, causal
        self.memory, self.memory_packing = memory, memory_packing

    def self_attention(
        self, attention: MultiHeadAttention, projected: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """See ``KeyValues``; ``projected`` is ``[N, ...]``."""
        layout = Layout(self.packing, self.packing, self.causal)
        return sentence_attention(attention, projected, None, layout, need_weights)

    def encoder_attention(
        self, attention: MultiHeadAttention, queries: Tensor, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """See ``KeyValues``; ``queries`` is ``[N, ...]``.

        Raises:
            ValueError: there is no encoder output.
        """
        if self.memory is None or self.memory_packing is None:
            raise ValueError("encoder-decoder attention needs memory, the encoder's output")
        memory_rows = attention.project_memory(self.memory)
        layout = Layout(self.packing, self.memory_packing)
        return sentence_attention(attention, queries, memory_rows, layout, need_weights)


@operation
def sentence_attention(
    attention: MultiHeadAttention,
    rows: Tensor,
    memory_rows: Tensor | None,
    layout: Layout,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """Attention over whole sentences: pads them, attends and packs the result.

    Args:
        rows: queries ``[N, H * K]``; in self-attention followed by keys and values, ``[N, H * (2 K
            + d_v)]``.
        memory_rows: keys and values, ``[N_s, H * (K + d_v)]``; None in self-attention.

    Returns:
        ``[N, H * d_v]``, and the weights ``[B, H, T, S]`` if ``need_weights``, else None.
    """
    packing, key_packing, causal = layout
    positions = None
    if memory_rows is None:
        q, k, v = attention.self_heads(packing.pad(rows))
        each = torch.arange(packing.max_length, device=rows.device)
        positions = Positions(each, each)
    else:
        q = attention.heads(packing.pad(rows), attention.d_k)
        k, v = attention.memory_heads(key_packing.pad(memory_rows))
    # A real query never sees the padding after it, so causal attention needs no padding mask.
    allowed = None if causal else key_packing.allowed
    if positions is not None and (causal or attention.window):
        near = position_mask(positions, causal, attention.window)
        allowed = near if allowed is None else near & allowed
    context, weights = attention.attend(q, k, v, allowed, need_weights, positions)
    return packing.pack(context), weights
