"""Reorders Adam's state between fairseq's parameters and the plugin's, some of which are fused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...checkpoint_error import CheckpointError
from ...state_names import to_fairseq_names, to_our_names
from ..meta_models import Shapes

_GROUP = ("lr", "betas", "eps", "weight_decay")


def is_adam(state: dict[str, Any]) -> bool:
    """Whether an optimizer state can be Adam's; it is empty before the first update."""
    entries, groups = state.get("state", {}).values(), state.get("param_groups", [])
    named = "state" in state and any("betas" in group for group in groups)
    return named and all({"step", "exp_avg", "exp_avg_sq"} <= set(e) for e in entries)


def reorder(state: dict[str, Any], ours: Shapes, stock: Shapes, to: str) -> dict[str, Any]:
    """Adam's state for the other side's parameters; also for FP16Optimizer's single flat vector.

    Args:
        state: the optimizer state.
        ours: the plugin's parameters in order.
        stock: stock fairseq's parameters in order.
        to: ``stock`` or ``plugin``.

    Raises:
        CheckpointError: the state is of other parameters.
    """
    before, after = (ours, stock) if to == "stock" else (stock, ours)
    entries = [state["state"][key] for key in sorted(state["state"])]
    total = sum(shape.numel() for shape in before.values())
    flat = len(entries) == 1 and entries[0]["exp_avg"].shape == (total,)
    given = state["param_groups"][0]
    group = {key: given[key] for key in _GROUP} | {"amsgrad": given.get("amsgrad", False)}
    group["params"] = list(range(1 if flat else len(after)))
    if not entries:  # before the first update
        return {**state, "param_groups": [group]}
    if not flat and len(entries) != len(before):
        raise CheckpointError(
            f"the optimizer's state is of {len(entries)} tensors, the model has {len(before)}:"
            " train with one device's full state, not a sharded one"
        )
    shapes = [] if flat else [entry["exp_avg"].shape for entry in entries]
    for (name, shape), stored in zip(before.items(), shapes, strict=False):
        if stored != shape:
            raise CheckpointError(
                f"the optimizer's state of {name} is {list(stored)}, not {list(shape)} like the"
                " parameter: it is of another model"
            )
    named: dict[str, dict[str, Tensor]] = {}
    for moment in ("exp_avg", "exp_avg_sq"):
        values = (
            entries[0][moment].split([shape.numel() for shape in before.values()])
            if flat
            else [entry[moment] for entry in entries]
        )
        tensors = {
            name: value.reshape(shape)
            for (name, shape), value in zip(before.items(), values, strict=True)
        }
        named[moment] = _rename(tensors, to)
    renamed: list[dict[str, Any]] = [
        {moment: tensors[name].reshape(shape).clone() for moment, tensors in named.items()}
        for name, shape in after.items()
    ]
    if flat:
        renamed = [
            {moment: torch.cat([entry[moment].flatten() for entry in renamed]) for moment in named}
        ]
    step = {"step": int(entries[0]["step"])}
    moved = {number: step | entry for number, entry in enumerate(renamed)}
    return {**state, "state": moved, "param_groups": [group]}


def _rename(tensors: dict[str, Tensor], to: str) -> dict[str, Tensor]:
    if to == "plugin":
        return to_our_names(tensors)
    query = "encoder_attention.query.bias"
    width = next(t.size(0) for name, t in tensors.items() if name.endswith(query))
    return to_fairseq_names(tensors, width, width)
