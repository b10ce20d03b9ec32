"""The weights of equation (1) in every layer and head, for a sentence and its translation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..model import VaswaniTransformer

KINDS = ("encoder", "decoder", "encoder-decoder")  # the three uses of attention, section 3.2.3


@dataclass(frozen=True)
class AttentionWeights:
    """Rows are queries, columns are keys. Each row is a distribution over the visible keys.

    Attributes:
        encoder: ``[N, H, S, S]``, float32.
        decoder: ``[N, H, T, T]``, zero above the diagonal.
        encoder_decoder: ``[N, H, T, S]``.
    """

    encoder: Tensor
    decoder: Tensor
    encoder_decoder: Tensor

    def of(self, kind: str) -> Tensor:
        """The weights of one of ``KINDS``."""
        return getattr(self, kind.replace("-", "_"))


@torch.no_grad()
def model_attention(
    model: nn.Module, source_tokens: Tensor, target_tokens: Tensor
) -> AttentionWeights:
    """The attention weights of a source sentence and its translation.

    Args:
        model: a model of the plugin, in evaluation mode.
        source_tokens: ids with end of sentence, ``[S]``.
        target_tokens: ids with end of sentence, ``[T]``. Row t of the decoder is the position that
            predicts token t. Its key j is the input of position j: the end-of-sentence symbol, with
            which fairseq begins, and then the tokens before t.

    Returns:
        Tensors on the CPU.

    Raises:
        ValueError: the model is not the plugin's, or is in training mode.
    """
    if not isinstance(model, VaswaniTransformer):
        raise ValueError(
            f"{type(model).__name__} does not return attention weights: convert its checkpoint"
            " (transformer-plugin convert --to plugin)"
        )
    if model.training:
        raise ValueError("dropout would change the weights: call model.eval() first")
    model.prepare_scoring(source_tokens.numel())
    device = next(model.parameters()).device
    source, target = source_tokens[None].to(device), target_tokens.to(device)
    memory, packing, encoder = model.encoder.encode(source, need_weights=True)
    _, _, decoder = model.decoder.decode(target.roll(1)[None], memory, packing, need_weights=True)

    def stacked(layers: Iterable[Tensor | None]) -> Tensor:
        return torch.stack([weights[0] for weights in layers if weights is not None]).cpu()

    return AttentionWeights(
        stacked(encoder),
        stacked(own for own, _ in decoder),
        stacked(over_source for _, over_source in decoder),
    )
