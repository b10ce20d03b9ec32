"""The common part of the encoder and the decoder stack (section 3.1)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from torch import Tensor, nn

from .activation_checkpointing import checkpointed
from .embedding import embed
from .key_values import KeyValues
from .layers import LayerShape
from .operation import is_unmodified
from .packing import Packing, pack_tokens
from .products import row_multiple
from .residual import layer_norm

Weights = tuple[Tensor | None, ...]  # one for each attention of a layer, ``[B, H, T, S]``


class Stack(nn.Module):
    """Embeds tokens and runs N layers.

    Args:
        embed_tokens: token embedding, ``[V, D]``; its ``padding_idx`` is never attended to.
        embed_positions: positional encoding.
        shape: hyperparameters of a layer.
        base: arguments of a subclass's second base class (fairseq's).

    Raises:
        ValueError: the embedding has no ``padding_idx``.
    """

    layers: Any  # nn.ModuleList, of EncoderLayer or DecoderLayer
    norm: nn.Module | None

    def __init__(
        self, embed_tokens: nn.Embedding, embed_positions: nn.Module, shape: LayerShape, **base: Any
    ) -> None:
        super().__init__(**base)
        if embed_tokens.padding_idx is None:
            raise ValueError("the embedding has no padding_idx: give one, even if it is never used")
        self.padding_idx = embed_tokens.padding_idx
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.dropout = shape.dropout
        self.checkpoint_activations = shape.checkpoint_activations

    def add_layers(self, layers: Iterable[nn.Module], shape: LayerShape) -> None:
        """Adds the layers and, with pre-norm, a final norm."""
        self.layers = nn.ModuleList(layers)
        self.norm = layer_norm(shape.d_model, shape.layer_norm_eps) if shape.pre_norm else None

    def all_layers(self, wanted: bool) -> range:
        """The numbers of all layers; empty if their weights are not wanted."""
        return range(len(self.layers) if wanted else 0)

    def embed(self, tokens: Tensor, positions: Tensor, max_length: int) -> Tensor:
        """Embeds tokens at ``positions``, all below ``max_length``; returns ``[..., D]``."""
        rate = self.dropout if self.training else 0.0
        return embed(tokens, positions, max_length, self.embed_tokens, self.embed_positions, rate)

    def embed_sentences(self, tokens: Tensor) -> tuple[Tensor, Packing]:
        """Embeds whole sentences ``[B, L]``, padded on either side; returns packed rows ``[N, D]``
        and their layout."""
        multiple = row_multiple(next(self.parameters()))
        if multiple > 1 and not is_unmodified(self):
            multiple = 1  # idle rows would count in the user's statistics and losses
        rows, packing = pack_tokens(tokens, self.padding_idx, multiple)
        return self.embed(rows, packing.positions, packing.max_length), packing

    def through_layers(
        self, x: Tensor, key_values: Iterable[KeyValues], asked: Container[int] = ()
    ) -> tuple[Tensor, list[Weights]]:
        """Runs all layers, over whole sentences or one decoding step.

        Args:
            x: the output of ``embed``.
            key_values: what each layer attends to.
            asked: numbers of the layers, from 0, whose attention weights are wanted.

        Returns:
            The shape of ``x``; and those weights, one tuple for each layer.
        """
        all_weights: list[Weights] = []
        for i, (layer, seen) in enumerate(zip(self.layers, key_values, strict=False)):
            run = checkpointed(layer) if self.checkpoint_activations else layer
            x, *weights = run(x, seen, i in asked)
            if i in asked:
                all_weights.append(tuple(weights))
        return (x if self.norm is None else self.norm(x)), all_weights
