"""What the encoder and the decoder stack have in common (section 3.1)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from torch import Tensor, nn

from .embedding import embed
from .key_values import KeyValues
from .layers import LayerShape
from .packing import Packing
from .products import row_multiple

Weights = tuple[Tensor | None, ...]  # of each attention of a layer, ``[B, H, T, S]``


class Stack(nn.Module):
    """Embedded tokens through N layers.

    Args:
        embed_tokens: token embedding, ``[V, D]``, whose ``padding_idx`` is not attended to.
        embed_positions: positional encoding.
        shape: numbers of a layer.
        base: arguments of a second base class of a subclass, fairseq's.
    """

    layers: Any  # nn.ModuleList, of EncoderLayer or DecoderLayer
    norm: nn.Module | None

    def __init__(
        self, embed_tokens: nn.Embedding, embed_positions: nn.Module, shape: LayerShape, **base: Any
    ) -> None:
        super().__init__(**base)
        self.padding_idx: int = embed_tokens.padding_idx  # type: ignore[assignment]
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.dropout = shape.dropout

    def add_layers(self, layers: Iterable[nn.Module], shape: LayerShape) -> None:
        """Takes the layers, and with pre-norm a last norm."""
        self.layers = nn.ModuleList(layers)
        self.norm = (
            nn.LayerNorm(shape.d_model, eps=shape.layer_norm_eps) if shape.pre_norm else None
        )

    def all_layers(self, wanted: bool) -> range:
        """The numbers of all layers; of none where their weights are not wanted."""
        return range(len(self.layers) if wanted else 0)

    def embed(self, tokens: Tensor, positions: Tensor, max_length: int) -> Tensor:
        """The layers' input, ``[..., D]``, of tokens at ``positions``, all below ``max_length``."""
        rate = self.dropout if self.training else 0.0
        return embed(tokens, positions, max_length, self.embed_tokens, self.embed_positions, rate)

    def embed_sentences(self, tokens: Tensor) -> tuple[Tensor, Packing]:
        """The same of whole sentences ``[B, L]``, padded on either side: ``[N, D]``, and where its
        rows come from."""
        multiple = row_multiple(self.embed_tokens.weight)
        rows, packing = Packing.of_tokens(tokens, self.padding_idx, multiple)
        return self.embed(rows, packing.positions, packing.max_length), packing

    def through_layers(
        self, x: Tensor, key_values: Iterable[KeyValues], asked: Container[int] = ()
    ) -> tuple[Tensor, list[Weights]]:
        """All layers, for whole sentences and for one position of a search.

        Args:
            x: as ``embed`` gives it.
            key_values: what each layer attends to.
            asked: numbers of the layers, from 0, whose attention weights are wanted.

        Returns:
            As ``x``; and those weights, a tuple a layer.
        """
        all_weights: list[Weights] = []
        for i, (layer, seen) in enumerate(zip(self.layers, key_values, strict=False)):
            x, *weights = layer(x, seen, i in asked)
            if i in asked:
                all_weights.append(tuple(weights))
        return (x if self.norm is None else self.norm(x)), all_weights
