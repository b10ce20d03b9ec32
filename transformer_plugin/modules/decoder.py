"""The decoder stack, section 3.1 of the paper."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .embedding import embed
from .key_values import WholeSentences
from .layers import DecoderLayer, LayerShape
from .packing import Packing, remove_padding
from .products import row_multiple


class Decoder(nn.Module):
    """N layers of masked self-attention, encoder-decoder attention and feed-forward network.

    Args:
        embed_tokens: token embedding, ``[V, D]``, whose ``padding_idx`` is not attended to.
        embed_positions: positional encoding.
        output_projection: the pre-softmax linear map, ``[V, D]``, without bias (section 3.4).
        shape: numbers of a layer.
        num_layers: N.
        base: for the class beside this one, where another class is built on two.
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
        super().__init__(**base)
        self.padding_idx: int = embed_tokens.padding_idx  # type: ignore[assignment]
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.output_projection = output_projection
        self.dropout = shape.dropout
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(num_layers))
        self.norm = (
            nn.LayerNorm(shape.d_model, eps=shape.layer_norm_eps) if shape.pre_norm else None
        )

    def embed(self, tokens: Tensor, positions: Tensor, max_length: int) -> Tensor:
        """The layers' input, see ``embed``."""
        rate = self.dropout if self.training else 0.0
        return embed(
            tokens, positions, max_length, self.embed_tokens, self.embed_positions, rate
        )

    def decode(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_packing: Packing,
        need_weights: bool = False,
    ) -> tuple[Tensor, Packing, list[tuple[Tensor, Tensor]]]:
        """All positions at once, each seeing the ones before it (teacher forcing).

        Args:
            tokens: target ids shifted right by one, ``[B, T]``.
            memory: the encoder's packed output, ``[N_s, D]``.
            memory_packing: its layout.

        Returns:
            Packed features ``[N, D]``, their layout and, when asked, each layer's weights of
            self-attention ``[B, H, T, T]`` and encoder-decoder attention ``[B, H, T, S]``.
        """
        multiple = row_multiple(self.embed_tokens.weight)
        rows, packing = Packing.of_tokens(tokens, self.padding_idx, multiple)
        x = self.embed(rows, packing.positions, packing.max_length)
        whole = WholeSentences(packing, True, memory, memory_packing)
        all_weights: list[tuple[Tensor, Tensor]] = []
        for layer in self.layers:
            x, self_weights, encoder_weights = layer(x, whole, need_weights)
            if need_weights:
                all_weights.append((self_weights, encoder_weights))
        return (x if self.norm is None else self.norm(x)), packing, all_weights

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
            memory_padding_mask: ``[B, S]``, True = padding; None = there is none.
        """
        rows, memory_packing = remove_padding(memory, memory_padding_mask)
        x, packing, _weights = self.decode(tokens, rows, memory_packing)
        return packing.pad(self.output_layer(x))
