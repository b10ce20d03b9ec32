"""Dropout in decoding: ``--retain-dropout`` and ``--retain-dropout-modules``."""

from __future__ import annotations

import re

from torch import nn

from .modules.decoder import Decoder
from .modules.encoder import Encoder
from .modules.feed_forward import PositionwiseFeedForward
from .modules.multi_head_attention import MultiHeadAttention
from .modules.residual import Residual
from .refusal import Refusal


def retain_dropout(model: nn.Module, modules: str | None = None) -> None:
    """Switches parts of a model to training mode; the two modes differ only in dropout.

    Args:
        modules: fairseq's names of the classes; None: all parts.

    Raises:
        Refusal: fairseq's Transformer has no such class.
    """
    parts: dict[str, list[nn.Module]] = {"MultiheadAttention": _below(model, MultiHeadAttention)}
    for name, kind in (("TransformerEncoder", Encoder), ("TransformerDecoder", Decoder)):
        parts[name] = _below(model, kind)
        parts[f"{name}Layer"] = [
            part
            for stack in parts[name]
            for part in _below(stack, Residual) + _below(stack, PositionwiseFeedForward)
        ]
    chosen = list(parts) if modules is None else re.findall(r"\w+", str(modules))
    chosen = [name.removesuffix("Base") for name in chosen]  # as fairseq calls them since 0.12
    for name in chosen:
        if name not in parts:
            raise Refusal(
                f"--retain-dropout-modules: there is no '{name}': expected one or more of"
                f" {', '.join(parts)}"
            )
        for module in parts[name]:
            module.training = True  # without its submodules


def is_random(model: nn.Module) -> bool:
    """Whether any part of the model is in training mode."""
    return any(module.training for module in model.modules())


def _below(module: nn.Module, kind: type[nn.Module]) -> list[nn.Module]:
    return [part for part in module.modules() if isinstance(part, kind)]
