"""The encoder stack with fairseq's interface."""

from __future__ import annotations

from contextlib import ExitStack

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from .combinations import check_overrides
from .modules.encoder import Encoder
from .modules.layers import LayerShape
from .modules.packing import pad_like


class VaswaniEncoder(Encoder, FairseqEncoder):
    """``Encoder`` with fairseq's interface.

    Args:
        dictionary: the source dictionary.
        embed_tokens, embed_positions, shape, num_layers: see ``Encoder``.
        max_positions: longest source sentence, in tokens.

    Raises:
        TypeError: a subclass overrides ``forward``, which training does not call, without
            ``encode``.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_overrides(cls, VaswaniEncoder, ["forward"], "encode")

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
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
    ) -> dict[str, list[Tensor]]:
        """fairseq's encoder call; the output is padded as the source is. If an ``encode`` of the
        user's own changes the lengths of sentences, it is padded on the right.

        Args:
            src_tokens: ``[B, S]``, padded on any side.
            src_lengths: ignored; padding determines the lengths.

        Returns:
            ``encoder_out`` ``[S, B, D]``, ``encoder_padding_mask`` ``[B, S]`` (True = padding) and
            ``src_lengths`` ``[B, 1]``. With ``return_all_hiddens`` also ``encoder_states``: the
            input of the first layer and the output of each, ``[S, B, D]``.
        """
        states: list[Tensor] = []
        with ExitStack() as hooks:
            for layer in dict.fromkeys(self.layers if return_all_hiddens else ()):  # may be shared
                each = layer.register_forward_hook(
                    lambda _, x, y: states.extend(([] if states else [x[0]]) + [y[0]])
                )
                hooks.callback(each.remove)
            x, packing, _weights = self.encode(src_tokens)
        mask = src_tokens.eq(self.padding_idx)
        is_own = type(self).encode is not VaswaniEncoder.encode
        if is_own and not (~mask).sum(dim=1).equal(packing.lengths):
            places = torch.arange(packing.max_length, device=mask.device)
            mask = places >= packing.lengths.unsqueeze(1)
        # [B, S, D] -> [S, B, D]
        rows, *states = (pad_like(each, packing, mask).transpose(0, 1) for each in (x, *states))
        return {
            "encoder_out": [rows],
            "encoder_padding_mask": [mask],
            "encoder_embedding": [],
            "encoder_states": states,
            "src_tokens": [],
            "src_lengths": [packing.lengths.unsqueeze(1)],
        }

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """Replaces sentence i by sentence ``new_order[i]``, ``[b]``."""
        batch_dim = {"encoder_out": 1, "encoder_states": 1}
        return {
            name: [t.index_select(batch_dim.get(name, 0), new_order) for t in tensors]
            for name, tensors in encoder_out.items()
        }

    def max_positions(self) -> int:
        """Longest source sentence, in tokens."""
        return self.longest
