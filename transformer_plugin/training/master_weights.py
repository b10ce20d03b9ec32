"""Writes the float32 master weights of mixed-precision training to checkpoints, and reads them.

fairseq saves the rounded weights. A resumed run would then differ from an uninterrupted one, and
averages would be computed from rounded weights.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer
from torch import Tensor, nn

from ..checkpoints.safe_loading import load


def master_weights(optimizer: Any, model: nn.Module) -> list[Tensor]:
    """The float32 weights of each trained parameter, the optimizer's own or views of them; empty if
    the model is trained in float32.

    Args:
        optimizer: the optimizer of fairseq's trainer.
    """
    masters = getattr(optimizer, "fp32_params", [])
    shapes = [p.shape for p in _trained(model)]
    if not isinstance(masters, dict):  # those of a criterion follow the model's
        return [master.data for master in masters[: len(shapes)]]
    (flat,) = masters.values()  # all weights in one vector, on one device
    sizes = [shape.numel() for shape in shapes]
    parts = flat.data[: sum(sizes)].split(sizes)
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def set_master_weights(optimizer: Any, model: nn.Module, weights: list[Tensor]) -> None:
    """Copies ``weights`` to the tensors that ``master_weights`` returns."""
    for master, weight in zip(master_weights(optimizer, model), weights, strict=True):
        master.copy_(weight)


def restore_master_weights(trainer: Trainer, filename: str) -> dict[str, Tensor]:
    """Copies the weights of a checkpoint to the master weights of all processes.

    Returns:
        In the process that saves, the float32 values of parameters that are not trained.
    """
    model = trainer.get_model()
    masters = master_weights(trainer.optimizer, model)
    frozen: dict[str, Tensor] = {}
    if masters and trainer.data_parallel_rank == 0:
        masters, frozen = weights_in(model, load(filename, mmap=True)["model"])
    if trainer.data_parallel_world_size > 1:
        for master in masters:
            distributed_utils.broadcast(master, 0, trainer.data_parallel_process_group)
    set_master_weights(trainer.optimizer, model, masters)
    return frozen


def full_state(
    model: nn.Module, masters: list[Tensor], frozen: Mapping[str, Tensor]
) -> dict[str, Any]:
    """``model.state_dict()`` with the master weights in place of the rounded ones.

    Args:
        frozen: see ``restore_master_weights``; each is used while the parameter is its rounded
            value.
    """
    full = _in_float32(model, masters)
    for (name, rounded), own in zip(model.named_parameters(), full.parameters(), strict=True):
        exact = None if rounded.requires_grad else frozen.get(name)
        if exact is not None and torch.equal(exact.to(rounded), rounded):
            own.data = exact
    return full.state_dict()


def weights_in(model: nn.Module, state: dict[str, Any]) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The master weights in a state dict of ``full_state``, and the other parameters by name."""
    weights = [torch.empty_like(p, dtype=torch.float32) for p in _trained(model)]
    full = _in_float32(model, weights)
    full.load_state_dict(state)
    return weights, {name: p.data for name, p in full.named_parameters() if not p.requires_grad}


def _in_float32(model: nn.Module, weights: list[Tensor]) -> nn.Module:
    """A copy of the model whose trained parameters are these tensors.

    Tensors computed from parameters, such as weight norm's ``weight``, are detached for deepcopy.
    """
    parameters = zip(_trained(model), weights, strict=True)
    instead: dict[int, Tensor] = {id(p): nn.Parameter(w.detach()) for p, w in parameters}
    for module in model.modules():
        for value in vars(module).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                instead[id(value)] = value.detach()
    return copy.deepcopy(model, instead).float()


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]
