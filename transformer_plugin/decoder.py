"""The decoder stack with fairseq's interface."""

from __future__ import annotations

from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from .combinations import check_overrides
from .modules.decoder import Decoder
from .modules.layers import LayerShape
from .modules.packing import Packing, pad_like, remove_padding
from .search.decoder_state import start_decoding

_STATE = "state"


class VaswaniDecoder(Decoder, FairseqIncrementalDecoder):
    """``Decoder`` with fairseq's interface.

    Args:
        dictionary: the target dictionary.
        embed_tokens, embed_positions, output_projection, shape, num_layers: see ``Decoder``.
        max_positions: longest target sentence, in tokens.

    Raises:
        TypeError: a subclass overrides ``forward``, which training does not call, or ``decode``,
            which a search does not call, without ``through_layers``.
    """

    dictionary: Dictionary

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_overrides(cls, VaswaniDecoder, ["forward", "decode"], "through_layers")

    def __init__(
        self,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        embed_positions: nn.Module,
        output_projection: nn.Linear,
        shape: LayerShape,
        num_layers: int,
        max_positions: int,
    ) -> None:
        arguments = (embed_tokens, embed_positions, output_projection, shape, num_layers)
        super().__init__(*arguments, dictionary=dictionary)
        self.longest = max_positions

    def forward(  # type: ignore[override]
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
        src_lengths: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, list[Tensor | None]]]:
        """fairseq's decoder call. With ``incremental_state`` only the last position is computed.

        Args:
            prev_output_tokens: ``[B, T]``, beginning with the end of sentence; padded on any side.
            encoder_out: see ``VaswaniEncoder.forward``.
            alignment_layer: layer whose encoder-decoder weights are returned, from 0; default: the
                last.
            alignment_heads: number of heads to average; default: all.
            src_lengths: ignored; padding determines the lengths.

        Returns:
            Logits ``[B, T, V]``, or features ``[B, T, D]``; and ``attn``, the encoder-decoder
            weights of one layer (the last by default), averaged over the heads, ``[B, T, S]``.
            T is padded on the side on which ``prev_output_tokens`` are, S as ``encoder_out`` is.

        Raises:
            ValueError: ``encoder_out`` is missing, or a layer or heads are chosen with
                ``incremental_state``.
        """
        if encoder_out is None:
            raise ValueError("the decoder needs the encoder's output")
        if incremental_state is not None and (alignment_layer, alignment_heads) != (None, None):
            raise ValueError(
                "alignment_layer and alignment_heads need all positions at once: omit"
                " incremental_state"
            )
        memory = encoder_out["encoder_out"][0].transpose(0, 1)  # [S, B, D] -> [B, S, D]
        source_mask = encoder_out["encoder_padding_mask"][0]
        attn: Tensor | None
        if incremental_state is not None:
            if _STATE not in incremental_state:
                incremental_state[_STATE] = start_decoding(
                    self, *remove_padding(memory, source_mask), need_weights=True
                )
            x, attn = incremental_state[_STATE].step(prev_output_tokens[:, -1:], need_weights=True)
        else:
            chosen = range(len(self.layers))[-1 if alignment_layer is None else alignment_layer]
            rows, packing, ((_, heads),) = self.decode(
                prev_output_tokens, *remove_padding(memory, source_mask), {chosen}
            )
            mask = prev_output_tokens.eq(self.padding_idx)
            x = pad_like(rows, packing, mask)
            assert heads is not None
            attn = _moved(heads[:, :alignment_heads].mean(dim=1), mask)
        if attn is not None:
            attn = _moved(attn.transpose(1, 2), source_mask).transpose(1, 2).contiguous()
        return (x if features_only else self.output_layer(x)), {"attn": [attn]}

    def extract_features(self, *args: Any, **options: Any) -> Any:
        """Like ``forward``, but returns features ``[B, T, D]`` instead of logits."""
        return self(*args, features_only=True, **options)

    def reorder_incremental_state_scripting(
        self, incremental_state: dict[str, Any], new_order: Tensor
    ) -> None:
        """Replaces the state of sentence i by that of sentence ``new_order[i]``, ``[b]``."""
        if _STATE in incremental_state:
            incremental_state[_STATE].select(new_order)

    reorder_incremental_state = reorder_incremental_state_scripting

    def max_positions(self) -> int:
        """Longest target sentence, in tokens."""
        return self.longest


def _moved(x: Tensor, padding_mask: Tensor) -> Tensor:
    """``[B, L, ...]``, padded on the right, to the same with padding where the mask has it."""
    packing = Packing.of_lengths((~padding_mask).sum(dim=1), padding_mask.size(1))
    return pad_like(packing.pack(x), packing, padding_mask)
