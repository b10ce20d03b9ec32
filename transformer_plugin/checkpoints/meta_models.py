"""Models built from settings, by default on torch's ``meta`` device: names and shapes without
memory."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import torch
from fairseq.models.transformer import TransformerModel
from omegaconf import OmegaConf
from torch import Tensor, nn

from ..checkpoint_error import CheckpointError
from ..config import VaswaniConfig
from ..model import VaswaniTransformer

Shapes = dict[str, torch.Size]


class _Dictionary:
    """A dictionary with only a size and fairseq's special symbols."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Dictionary) and self.size == other.size

    def pad(self) -> int:
        """The id of the padding symbol."""
        return 1

    def eos(self) -> int:
        """The id of the end of sentence."""
        return 2


def plugin_model(
    settings: dict[str, Any], tensors: Mapping[str, Tensor], device: str = "meta"
) -> VaswaniTransformer:
    """The plugin's model with these settings.

    Args:
        settings: all fields of ``VaswaniConfig``.
        tensors: a checkpoint's tensors by fairseq's names; they give the vocabulary sizes.

    Raises:
        CheckpointError: there are no embeddings.
        ValueError: the settings contradict each other.
    """
    cfg = cast("VaswaniConfig", OmegaConf.create(settings))
    with torch.device(device):
        return VaswaniTransformer.build_model(cfg, _task(tensors))


def stock_model(
    args: Namespace, tensors: Mapping[str, Tensor], device: str = "meta"
) -> TransformerModel:
    """Stock fairseq's Transformer with these arguments; see ``plugin_model``."""
    with torch.device(device):
        return TransformerModel.build_model(Namespace(**vars(args)), _task(tensors))


def parameter_shapes(model: nn.Module) -> Shapes:
    """Names and shapes of the parameters in the optimizer's order."""
    return {name: p.shape for name, p in model.named_parameters()}


def _task(tensors: Mapping[str, Tensor]) -> Any:
    names = [f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
    if missing := [name for name in names if name not in tensors]:
        raise CheckpointError(f"no {missing[0]}: the checkpoint is not of a plain Transformer")
    source, target = (_Dictionary(tensors[name].size(0)) for name in names)
    return SimpleNamespace(source_dictionary=source, target_dictionary=target)
