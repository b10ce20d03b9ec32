"""The decoder stack as fairseq wants it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from .embedding import embed
from .modules.key_values import WholeSentences
from .modules.layers import DecoderLayer, LayerShape
from .modules.packing import Packing
from .modules.products import row_multiple
from .search.decoder_state import start_decoding

_STATE = "state"


class VaswaniDecoder(FairseqIncrementalDecoder):
    """N layers of masked self-attention, encoder-decoder attention and feed-forward network.

    Args:
        dictionary: of the target language.
        embed_tokens: token embedding, ``[V, D]``.
        embed_positions: positional encoding.
        output_projection: the pre-softmax linear map, ``[V, D]``, without bias (section 3.4).
        shape: numbers of a layer.
        num_layers: N.
        max_positions: longest target sentence, in tokens.
    """

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
        super().__init__(dictionary)
        self.padding_idx: int = dictionary.pad()
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.output_projection = output_projection
        self.dropout = shape.dropout
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(num_layers))
        self.norm = (
            nn.LayerNorm(shape.d_model, eps=shape.layer_norm_eps) if shape.pre_norm else None
        )
        self.longest = max_positions

    def decode(
        self,
        prev_output_tokens: Tensor,
        memory: Tensor,
        memory_packing: Packing,
        need_weights: bool = False,
    ) -> tuple[Tensor, Packing, list[tuple[Tensor, Tensor]]]:
        """All positions at once, each seeing the ones before it (teacher forcing).

        Args:
            prev_output_tokens: target ids shifted right by one, ``[B, T]``.
            memory: the encoder's packed output, ``[N_s, D]``.

        Returns:
            Packed features ``[N, D]``, their layout and, when asked, each layer's weights of
            self-attention ``[B, H, T, T]`` and encoder-decoder attention ``[B, H, T, S]``.
        """
        tokens, packing = Packing.of_tokens(
            prev_output_tokens, self.padding_idx, row_multiple(self.embed_tokens.weight)
        )
        x = self.embed(tokens, packing.positions, packing.max_length)
        whole = WholeSentences(packing, True, memory, memory_packing)
        all_weights: list[tuple[Tensor, Tensor]] = []
        for layer in self.layers:
            x, self_weights, encoder_weights = layer(x, whole, need_weights)
            if need_weights:
                all_weights.append((self_weights, encoder_weights))
        return (x if self.norm is None else self.norm(x)), packing, all_weights

    def embed(self, tokens: Tensor, positions: Tensor, max_length: int) -> Tensor:
        """See ``StepDecoder``."""
        rate = self.dropout if self.training else 0.0
        return embed(
            tokens, positions, max_length, self.embed_tokens, self.embed_positions, rate
        )

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
        **_: Any,
    ) -> tuple[Tensor, dict[str, list[Tensor | None]]]:
        """fairseq's form: with ``incremental_state`` the last position alone.

        Returns:
            Logits ``[B, T, V]``, or features ``[B, T, D]``; and ``attn``, the encoder-decoder
            weights of one layer (the last by default), averaged over the heads, ``[B, T, S]``.
        """
        if encoder_out is None:
            raise ValueError("the decoder needs the encoder's output")
        memory = encoder_out["encoder_out"][0].transpose(0, 1)  # [S, B, D] -> [B, S, D]
        mask = encoder_out["encoder_padding_mask"][0]
        memory_packing = Packing.of_lengths((~mask).sum(dim=1), mask.size(1))
        if incremental_state is not None:
            if _STATE not in incremental_state:
                incremental_state[_STATE] = start_decoding(
                    self, memory_packing.pack(memory), memory_packing, need_weights=True
                )
            x, attn = incremental_state[_STATE].step(prev_output_tokens[:, -1:], need_weights=True)
        else:
            rows, packing, weights = self.decode(
                prev_output_tokens, memory_packing.pack(memory), memory_packing, need_weights=True
            )
            x = packing.pad(rows)
            attn = weights[-1 if alignment_layer is None else alignment_layer][1]
            attn = attn[:, :alignment_heads].mean(dim=1)
        return (x if features_only else self.output_layer(x)), {"attn": [attn]}

    def output_layer(self, features: Tensor) -> Tensor:
        """Logits ``[..., V]`` of features ``[..., D]``."""
        return self.output_projection(features)

    @property
    def project(self) -> Callable[[Tensor], Tensor]:
        """What makes logits of features: the linear map itself, unless a subclass has an
        ``output_layer`` of its own."""
        is_plain = type(self).output_layer is VaswaniDecoder.output_layer
        return self.output_projection if is_plain else self.output_layer

    def reorder_incremental_state_scripting(
        self, incremental_state: dict[str, Any], new_order: Tensor
    ) -> None:
        """Makes sentence i what sentence ``new_order[i]`` was."""
        if _STATE in incremental_state:
            incremental_state[_STATE].select(new_order)

    reorder_incremental_state = reorder_incremental_state_scripting

    def max_positions(self) -> int:
        """Longest target sentence, in tokens."""
        return self.longest
