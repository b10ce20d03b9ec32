"""The encoder stack as fairseq wants it."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from .modules.encoder import Encoder
from .modules.layers import LayerShape


class VaswaniEncoder(Encoder, FairseqEncoder):
    """``Encoder`` with fairseq's interface.

    Args:
        dictionary: of the source language.
        embed_tokens, embed_positions, shape, num_layers: see ``Encoder``.
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
        super().__init__(embed_tokens, embed_positions, shape, num_layers, dictionary=dictionary)
        self.longest = max_positions

    def forward(  # type: ignore[override]
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
