"""Where the decoder looked: encoder-decoder attention of a finished translation."""

from __future__ import annotations

from torch import Tensor, nn

from ..analysis.attention.weights import attention_weights
from ..model import VaswaniTransformer
from .translator import Part


def alignment(model: nn.Module, part: Part) -> Tensor | None:
    """Each layer's weights, averaged over the heads, ``[N, T, S]``: what each piece of the
    translation, and its end, took from each piece of the source, and its end.

    None where the model is not the plugin's.
    """
    if not isinstance(model, VaswaniTransformer):
        return None
    found = attention_weights(model, part.source_tokens, part.target_tokens)
    return found.encoder_decoder.mean(dim=1)
