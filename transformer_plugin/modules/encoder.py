"""The encoder stack, section 3.1 of the paper."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from torch import Tensor, nn

from .key_values import WholeSentences
from .layers import EncoderLayer, LayerShape
from .packing import Packing
from .stack import Stack


class Encoder(Stack):
    """N layers of self-attention and feed-forward network.

    Args:
        embed_tokens, embed_positions, shape, base: see ``Stack``.
        num_layers: N.
    """

    def __init__(
        self,
        embed_tokens: nn.Embedding,
        embed_positions: nn.Module,
        shape: LayerShape,
        num_layers: int = 6,
        **base: Any,
    ) -> None:
        super().__init__(embed_tokens, embed_positions, shape, **base)
        self.add_layers((EncoderLayer(shape) for _ in range(num_layers)), shape)

    def encode(
        self, tokens: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, Packing, list[Tensor]]:
        """Encodes source ids ``[B, S]``, padded on either side.

        Returns:
            The packed output ``[N, D]``, its layout, and, if ``need_weights``, the attention
            weights of each layer, ``[B, H, S, S]``.
        """
        x, packing = self.embed_sentences(tokens)
        whole = repeat(WholeSentences(packing))
        x, all_weights = self.through_layers(x, whole, self.all_layers(need_weights))
        return x, packing, [w for (w,) in all_weights if w is not None]

    def forward(self, tokens: Tensor) -> Tensor:
        """Source ids ``[B, S]`` to ``[B, S, D]``, padded on the right."""
        x, packing, _weights = self.encode(tokens)
        return packing.pad(x)
