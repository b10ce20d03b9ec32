"""The float32 weights behind a model that is trained in half precision go into its checkpoints.

fairseq saves the rounded weights, so that a run that goes on is not the run that stopped, and an
average is one of rounded numbers.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


def master_weights(optimizer: Any, model: nn.Module) -> list[Tensor]:
    """The float32 weights of each parameter that is trained; empty where there are none.

    Args:
        optimizer: of fairseq's trainer.
    """
    return [master.data for master in _masters(optimizer, model)]


def set_master_weights(optimizer: Any, model: nn.Module, weights: list[Tensor]) -> None:
    """Makes these the weights that ``master_weights`` gives."""
    for master, weight in zip(_masters(optimizer, model), weights, strict=True):
        master.data.copy_(weight)


def _masters(optimizer: Any, model: nn.Module) -> list[Tensor]:
    """Those of the optimizer, as it has them."""
    masters = getattr(optimizer, "fp32_params", [])
    if not isinstance(masters, dict):
        return list(masters)
    (flat,) = masters.values()  # all of them one after another, on one device
    shapes = [p.shape for p in _trained(model)]
    parts = flat.data.split([shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def full_state(model: nn.Module, masters: list[Tensor]) -> dict[str, Any]:
    """What ``model.state_dict()`` would be if it were trained in float32."""
    return _in_float32(model, masters).state_dict()


def weights_in(model: nn.Module, state: dict[str, Any]) -> list[Tensor]:
    """The weights that ``full_state`` was made of."""
    weights = [torch.empty_like(p, dtype=torch.float32) for p in _trained(model)]
    _in_float32(model, weights).load_state_dict(state)
    return weights


def _in_float32(model: nn.Module, weights: list[Tensor]) -> nn.Module:
    """A copy of the model whose trained parameters are these tensors."""
    parameters = zip(_trained(model), weights, strict=True)
    instead = {id(p): nn.Parameter(weight.detach()) for p, weight in parameters}
    return copy.deepcopy(model, instead).float()


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]
