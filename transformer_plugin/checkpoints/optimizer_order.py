"""Adam's state of a model's parameters, in our order and fused as ours, or as stock fairseq's."""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.models.transformer import TransformerModel
from omegaconf import OmegaConf
from torch import Tensor

from ..model import VaswaniTransformer
from ..state_names import to_fairseq_names, to_our_names
from .safe_loading import CheckpointError

Shapes = dict[str, torch.Size]
_STOCK_GROUP = ("lr", "betas", "eps", "weight_decay", "amsgrad")


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


def parameter_shapes(
    settings: dict[str, Any], args: Namespace, model: dict[str, Tensor]
) -> tuple[Shapes, Shapes]:
    """Names and shapes of our parameters and of stock fairseq's, each in its optimizer's order."""
    source, target = (
        _Symbols(model[f"{side}.embed_tokens.weight"].size(0)) for side in ("encoder", "decoder")
    )
    if args.share_all_embeddings:
        target = source
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    with torch.device("meta"):
        ours = VaswaniTransformer.build_model(OmegaConf.create(settings), task)
        stock = TransformerModel.build_model(Namespace(**vars(args)), task)
    return tuple(  # type: ignore[return-value]
        {name: p.shape for name, p in built.named_parameters()} for built in (ours, stock)
    )


def reorder(state: dict[str, Any], ours: Shapes, stock: Shapes, to: str) -> dict[str, Any]:
    """Adam's state for the other side's parameters; FP16Optimizer's one flat vector too.

    Raises:
        CheckpointError: the state is of other parameters.
    """
    before, after = (ours, stock) if to == "stock" else (stock, ours)
    entries = [state["state"][key] for key in sorted(state["state"])]
    total = sum(shape.numel() for shape in before.values())
    flat = len(entries) == 1 and entries[0]["exp_avg"].shape == (total,)
    if entries and not flat and len(entries) != len(before):
        raise CheckpointError(
            f"the optimizer's state is of {len(entries)} tensors, the model has {len(before)}:"
            " train with one device's full state, not a sharded one"
        )
    named: dict[str, OrderedDict[str, Tensor]] = {}
    for moment in ("exp_avg", "exp_avg_sq") if entries else ():
        values = (
            entries[0][moment].split([shape.numel() for shape in before.values()])
            if flat
            else [entry[moment] for entry in entries]
        )
        tensors = OrderedDict(
            (name, value.reshape(shape))
            for (name, shape), value in zip(before.items(), values, strict=True)
        )
        named[moment] = _rename(tensors, to)
    step = float(entries[0]["step"]) if entries else 0.0
    renamed = []
    for name, shape in after.items() if entries else ():
        entry: dict[str, Any] = {"step": int(step) if to == "stock" else torch.tensor(step)}
        for moment, tensors in named.items():
            entry[moment] = tensors[name].reshape(shape).clone()
        renamed.append(entry)
    if flat:
        joined = {
            moment: torch.cat([entry[moment].flatten() for entry in renamed]) for moment in named
        }
        renamed = [{"step": renamed[0]["step"], **joined}]
    group = {key: state["param_groups"][0][key] for key in _STOCK_GROUP}
    group["params"] = list(range(1 if flat else len(after)))
    return {**state, "state": dict(enumerate(renamed)), "param_groups": [group]}


def _rename(tensors: OrderedDict[str, Tensor], to: str) -> OrderedDict[str, Tensor]:
    if to == "plugin":
        return to_our_names(tensors)
    query = "encoder_attention.query.bias"
    width = next(t.size(0) for name, t in tensors.items() if name.endswith(query))
    return to_fairseq_names(tensors, width, width)
