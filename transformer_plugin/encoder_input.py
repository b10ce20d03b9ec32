"""What a search gives the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .model import VaswaniTransformer
from .modules.packing import Packing

_NOT_FOR_ENCODERS = ("src_lengths", "prev_output_tokens")


class EncoderInput(NamedTuple):
    """Sentences of a batch.

    Attributes:
        tokens: source ids with end of sentence, padded, ``[B, S]``.
        extra: what a task of the user's own has added to ``net_input``.
    """

    tokens: Tensor
    extra: dict[str, Any]

    @classmethod
    def of(cls, net_input: Mapping[str, Any], sentences: Tensor, pad: int) -> EncoderInput:
        """Some sentences, ``[b]``, of fairseq's ``net_input``: their rows of each tensor that has
        one for each sentence, and whatever else is there."""
        size = net_input["src_tokens"].shape[:1]
        extra = {
            name: x[sentences] if torch.is_tensor(x) and x.shape[:1] == size else x
            for name, x in net_input.items()
            if name not in _NOT_FOR_ENCODERS
        }
        tokens = extra.pop("src_tokens")
        if not extra:  # which may have a column for each token
            tokens = tokens[:, tokens.ne(pad).any(dim=0)]
        return cls(tokens, extra)

    def encode(self, model: VaswaniTransformer) -> tuple[Tensor, Packing]:
        """The encoder's packed output, ``[N_s, D]``, and its layout."""
        memory, packing, _weights = model.encoder.encode(self.tokens, **self.extra)
        return memory, packing
