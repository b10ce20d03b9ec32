"""The decoder stack, section 3.1 of the paper."""

from __future__ import annotations

import sys
from collections.abc import Container
from itertools import repeat
from typing import Any

from torch import Tensor, nn

from .key_values import WholeSentences
from .layers import DecoderLayer, LayerShape
from .packing import Packing, remove_padding
from .stack import Stack, Weights


class Decoder(Stack):
    """N layers of masked self-attention, encoder-decoder attention and feed-forward network.

    Args:
        embed_tokens, embed_positions, shape, base: see ``Stack``.
        output_projection: the pre-softmax linear map, ``[V, D]``, without bias (section 3.4).
        num_layers: N.
    """

    def __init__(
        self,
        embed_tokens: nn.Embedding,
        embed_positions: nn.Module,
        output_projection: nn.Linear,
        shape: LayerShape,
        num_layers: int = 6,
        **base: Any,
    ) -> None:
        super().__init__(embed_tokens, embed_positions, shape, **base)
        self.output_projection = output_projection
        self.add_layers((DecoderLayer(shape) for _ in range(num_layers)), shape)

    def decode(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_packing: Packing,
        need_weights: bool | Container[int] = False,
    ) -> tuple[Tensor, Packing, list[Weights]]:
        """Computes all positions at once; each sees itself and earlier ones (teacher forcing).

        Args:
            tokens: target ids shifted right by one, ``[B, T]``.
            memory: the encoder's packed output, ``[N_s, D]``.
            memory_packing: its layout.
            need_weights: True for the attention weights of all layers, or numbers of layers.

        Returns:
            Packed features ``[N, D]``, their layout and, of each layer asked for, the weights of
            self-attention ``[B, H, T, T]`` and encoder-decoder attention ``[B, H, T, S]``.
        """
        x, packing = self.embed_sentences(tokens)
        whole = repeat(WholeSentences(packing, True, memory, memory_packing))
        asked = self.all_layers(need_weights) if isinstance(need_weights, bool) else need_weights
        x, all_weights = self.through_layers(x, whole, asked)
        return x, packing, all_weights

    def max_positions(self) -> int:
        """The longest target that has positions, in tokens."""
        return getattr(self.embed_positions, "max_positions", sys.maxsize)

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits ``[..., V]`` of features ``[..., D]``."""
        logits: Tensor = self.output_projection(features)
        return logits

    def forward(
        self, tokens: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None
    ) -> Tensor:
        """Logits ``[B, T, V]``, padded on the right.

        Args:
            tokens: target ids shifted right by one, ``[B, T]``.
            memory: the encoder's output, ``[B, S, D]``.
            memory_padding_mask: ``[B, S]``, True = padding; None = no padding.
        """
        rows, memory_packing = remove_padding(memory, memory_padding_mask)
        x, packing, _weights = self.decode(tokens, rows, memory_packing)
        return packing.pad(self.output_layer(x))
