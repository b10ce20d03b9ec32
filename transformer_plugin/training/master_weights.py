"""Writes the float32 master weights of mixed-precision training to checkpoints, and reads them.

fairseq saves the rounded weights. A resumed run would then differ from an uninterrupted one, and
averages would be computed from rounded weights.
"""

from __future__ import annotations

import copy
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


def restore_master_weights(trainer: Trainer, filename: str) -> None:
    """Copies the weights of a checkpoint to the master weights of all processes."""
    model = trainer.get_model()
    masters = master_weights(trainer.optimizer, model)
    if masters and trainer.data_parallel_rank == 0:
        masters = weights_in(model, load(filename, mmap=True)["model"])
    if trainer.data_parallel_world_size > 1:
        for master in masters:
            distributed_utils.broadcast(master, 0, trainer.data_parallel_process_group)
    set_master_weights(trainer.optimizer, model, masters)


def full_state(model: nn.Module, masters: list[Tensor]) -> dict[str, Any]:
    """``model.state_dict()`` with the master weights in place of the rounded ones."""
    return _in_float32(model, masters).state_dict()


def weights_in(model: nn.Module, state: dict[str, Any]) -> list[Tensor]:
    """The master weights in a state dict of ``full_state``."""
    weights = [torch.empty_like(p, dtype=torch.float32) for p in _trained(model)]
    _in_float32(model, weights).load_state_dict(state)
    return weights


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
