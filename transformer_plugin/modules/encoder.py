"""The encoder stack, section 3.1 of the paper."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .embedding import embed
from .key_values import WholeSentences
from .layers import EncoderLayer, LayerShape
from .packing import Packing
from .products import row_multiple


class Encoder(nn.Module):
    """N layers of self-attention and feed-forward network.

    Args:
        embed_tokens: token embedding, ``[V, D]``, whose ``padding_idx`` is not attended to.
        embed_positions: positional encoding.
        shape: numbers of a layer.
        num_layers: N.
        base: for the class beside this one, where another class is built on two.
    """

    def __init__(
        self,
        embed_tokens: nn.Embedding,
        embed_positions: nn.Module,
        shape: LayerShape,
        num_layers: int = 6,
        **base: Any,
    ) -> None:
        super().__init__(**base)
        self.padding_idx: int = embed_tokens.padding_idx  # type: ignore[assignment]
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.dropout = shape.dropout
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(num_layers))
        self.norm = (
            nn.LayerNorm(shape.d_model, eps=shape.layer_norm_eps) if shape.pre_norm else None
        )

    def encode(
        self, tokens: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, Packing, list[Tensor]]:
        """Encodes source ids ``[B, S]``, padded on either side.

        Returns:
            The packed output ``[N, D]``, its layout, and, when asked, the attention weights of
            each layer, ``[B, H, S, S]``.
        """
        multiple = row_multiple(self.embed_tokens.weight)
        rows, packing = Packing.of_tokens(tokens, self.padding_idx, multiple)
        x = embed(
            rows,
            packing.positions,
            packing.max_length,
            self.embed_tokens,
            self.embed_positions,
            self.dropout if self.training else 0.0,
        )
        whole = WholeSentences(packing)
        all_weights: list[Tensor] = []
        for layer in self.layers:
            x, weights = layer(x, whole, need_weights)
            if weights is not None:
                all_weights.append(weights)
        return (x if self.norm is None else self.norm(x)), packing, all_weights

    def forward(self, tokens: Tensor) -> Tensor:
        """Source ids ``[B, S]`` to ``[B, S, D]``, padded on the right."""
        x, packing, _weights = self.encode(tokens)
        return packing.pad(x)
