"""Where the decoder looked: encoder-decoder attention of a finished translation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..model import VaswaniTransformer
from .translator import Part


@torch.inference_mode()
def alignment(model: nn.Module, part: Part) -> Tensor | None:
    """Each layer's weights, averaged over the heads, ``[N, T, S]``: what each piece of the
    translation, and its end, took from each piece of the source, and its end.

    None where the model is not the plugin's.
    """
    if not isinstance(model, VaswaniTransformer):
        return None
    device = next(model.parameters()).device
    source, target = part.source_tokens[None].to(device), part.target_tokens.to(device)
    memory, packing, _ = model.encoder.encode(source)
    # The decoder begins with the end of sentence, fairseq's way, and sees what it has written.
    _, _, weights = model.decoder.decode(target.roll(1)[None], memory, packing, need_weights=True)
    return torch.stack([w.float().mean(dim=1)[0] for _, w in weights]).cpu()
