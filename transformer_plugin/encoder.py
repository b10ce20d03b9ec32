"""The encoder stack as fairseq wants it."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from .embedding import embed
from .modules.key_values import WholeSentences
from .modules.layers import EncoderLayer, LayerShape
from .modules.packing import Packing
from .modules.products import row_multiple


class VaswaniEncoder(FairseqEncoder):
    """N layers of self-attention and feed-forward network, section 3.1.

    Args:
        dictionary: of the source language.
        embed_tokens: token embedding, ``[V, D]``.
        embed_positions: positional encoding.
        shape: numbers of a layer.
        num_layers: N.
        max_positions: longest source sentence, in tokens.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        embed_positions: nn.Module,
        shape: LayerShape,
        num_layers: int,
        max_positions: int,
    ) -> None:
        super().__init__(dictionary)
        self.padding_idx: int = dictionary.pad()
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.dropout = shape.dropout
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(num_layers))
        self.norm = (
            nn.LayerNorm(shape.d_model, eps=shape.layer_norm_eps) if shape.pre_norm else None
        )
        self.longest = max_positions

    def encode(
        self, src_tokens: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, Packing, list[Tensor]]:
        """Encodes source ids ``[B, S]``, padded on either side.

        Returns:
            The packed output ``[N, D]``, its layout, and, when asked, the attention weights of
            each layer, ``[B, H, S, S]``.
        """
        tokens, packing = Packing.of_tokens(
            src_tokens, self.padding_idx, row_multiple(self.embed_tokens.weight)
        )
        x = embed(
            tokens,
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

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, **_: Any
    ) -> dict[str, list[Tensor]]:
        """fairseq's form of the output, padded on the right: ``encoder_out`` ``[S, B, D]``,
        ``encoder_padding_mask`` ``[B, S]``, True = padding, and ``src_lengths`` ``[B, 1]``.
        """
        x, packing, _weights = self.encode(src_tokens)
        mask = packing.padding_mask
        if mask is None:
            mask = torch.zeros(src_tokens.shape, dtype=torch.bool, device=src_tokens.device)
        return {
            "encoder_out": [packing.pad(x).transpose(0, 1)],  # [B, S, D] -> [S, B, D]
            "encoder_padding_mask": [mask],
            "encoder_embedding": [],
            "encoder_states": [],
            "src_tokens": [],
            "src_lengths": [packing.lengths.unsqueeze(1)],
        }

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """Makes sentence i what sentence ``new_order[i]`` was."""
        batch_dim = {"encoder_out": 1}
        return {
            name: [t.index_select(batch_dim.get(name, 0), new_order) for t in tensors]
            for name, tensors in encoder_out.items()
        }

    def max_positions(self) -> int:
        """Longest source sentence, in tokens."""
        return self.longest
