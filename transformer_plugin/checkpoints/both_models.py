"""A model as the plugin builds it and as stock fairseq does, without memory for their numbers."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.models.transformer import TransformerModel
from omegaconf import OmegaConf
from torch import Tensor

from ..model import VaswaniTransformer
from .safe_loading import CheckpointError

Shapes = dict[str, torch.Size]


@dataclass(frozen=True)
class BothModels:
    """Of the same settings; their tensors are on torch's ``meta`` device."""

    ours: VaswaniTransformer
    stock: TransformerModel

    def parameter_shapes(self) -> tuple[Shapes, Shapes]:
        """Names and shapes of our parameters and of stock's, each in its optimizer's order."""
        ours, stock = (
            {name: p.shape for name, p in model.named_parameters()}
            for model in (self.ours, self.stock)
        )
        return ours, stock


class _Symbols:
    """A dictionary of which only its size is known."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Symbols) and self.size == other.size

    def pad(self) -> int:
        """fairseq's."""
        return 1

    def eos(self) -> int:
        """fairseq's."""
        return 2


def build_both(settings: dict[str, Any], args: Namespace, model: dict[str, Tensor]) -> BothModels:
    """Both models for the settings of each side.

    Args:
        model: a checkpoint's tensors, by fairseq's names; it tells the sizes of the vocabularies.

    Raises:
        CheckpointError: it has no embeddings.
    """
    names = [f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
    if missing := [name for name in names if name not in model]:
        raise CheckpointError(f"no {missing[0]}: the checkpoint is not of a plain Transformer")
    source, target = (_Symbols(model[name].size(0)) for name in names)
    if args.share_all_embeddings:
        target = source
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    with torch.device("meta"):
        return BothModels(
            VaswaniTransformer.build_model(OmegaConf.create(settings), task),
            TransformerModel.build_model(Namespace(**vars(args)), task),
        )
