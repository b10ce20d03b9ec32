"""The encoder-decoder attention of a translation."""

from __future__ import annotations

from torch import Tensor, nn

from ..model import VaswaniTransformer
from .attention_weights import attention_weights
from .translator import Part


def alignment(model: nn.Module, part: Part) -> Tensor | None:
    """The attention weights of each layer, averaged over the heads, ``[N, T, S]``.

    T counts the subwords of the translation and its end of sentence; S those of the source.
    Returns None if the model is not the plugin's.
    """
    if not isinstance(model, VaswaniTransformer):
        return None
    found = attention_weights(model, part.source_tokens, part.target_tokens)
    return found.encoder_decoder.mean(dim=1)
