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
    """The float32 weights of each parameter that is trained, as views; empty where there are none.

    Args:
        optimizer: of fairseq's trainer.
    """
    masters = getattr(optimizer, "fp32_params", [])
    if not isinstance(masters, dict):
        return [master.data for master in masters]
    (flat,) = masters.values()  # all of them one after another, on one device
    shapes = [p.shape for p in _trained(model)]
    parts = flat.data.split([shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def full_state(model: nn.Module, masters: list[Tensor]) -> dict[str, Any]:
    """What ``model.state_dict()`` would be if it were trained in float32."""
    full = copy.deepcopy(model).float()
    for parameter, master in zip(_trained(full), masters, strict=True):
        parameter.data = master
    return full.state_dict()


@torch.no_grad()
def restore(model: nn.Module, masters: list[Tensor], state: dict[str, Any]) -> None:
    """Gives ``masters`` the values of ``full_state``."""
    full = copy.deepcopy(model).float()
    full.load_state_dict(state)
    for parameter, master in zip(_trained(full), masters, strict=True):
        master.copy_(parameter)


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]
