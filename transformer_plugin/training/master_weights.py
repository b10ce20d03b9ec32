"""Writes the float32 master weights of mixed-precision training to checkpoints, and reads them.

fairseq saves the rounded weights. A resumed run would then differ from an uninterrupted one, and
averages would be computed from rounded weights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from fairseq import utils
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer
from torch import Tensor, nn

from ..checkpoints.safe_loading import load


def master_weights(optimizer: Any) -> dict[Tensor, Tensor]:
    """Maps each parameter that is trained in half precision to its float32 weight, which is the
    optimizer's own or a view of it. Empty if the model is trained in float32.

    Args:
        optimizer: the optimizer of fairseq's trainer.
    """
    masters = getattr(optimizer, "fp32_params", [])
    parameters: list[nn.Parameter] = getattr(optimizer, "fp16_params", [])
    if isinstance(masters, dict):  # all weights in one vector, on one device
        (flat,) = masters.values()
        parts = flat.data.split([p.numel() for p in parameters])
        masters = [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
    return {p: master.data for p, master in zip(parameters, masters, strict=True)}


def restore_master_weights(trainer: Trainer, filename: str) -> dict[str, Tensor]:
    """Copies the weights of a checkpoint, which model and criterion have loaded, to the master
    weights of all processes.

    Returns:
        In the process that saves, the float32 values of the model's parameters that are not
        trained.
    """
    masters = master_weights(trainer.optimizer)
    frozen: dict[str, Tensor] = {}
    if masters and trainer.data_parallel_rank == 0:
        state, criterion = load(filename, mmap=True), trainer.get_criterion()
        frozen = load_full_state(trainer.get_model(), masters, state["model"])
        if utils.has_parameters(criterion):
            load_full_state(criterion, masters, state["criterion"])
    if trainer.data_parallel_world_size > 1:
        for master in masters.values():
            distributed_utils.broadcast(master, 0, trainer.data_parallel_process_group)
    return frozen


def full_state(
    model: nn.Module, masters: Mapping[Tensor, Tensor], frozen: Mapping[str, Tensor]
) -> dict[str, Any]:
    """``model.state_dict()`` in float32, with the master weights in place of the rounded ones.

    Args:
        model: the model, or a criterion with parameters.
        masters: see ``master_weights``.
        frozen: see ``restore_master_weights``; each is used while the parameter is its rounded
            value.
    """
    values = dict(masters)
    for name, rounded in model.named_parameters():
        if rounded not in values:
            widened = rounded.detach().float()
            exact = frozen.get(name, widened)
            values[rounded] = exact if exact.to(rounded).equal(rounded) else widened
    with _parameters_replaced(model, values):
        state: dict[str, Any] = model.state_dict()
    for name, value in state.items():  # buffers
        if isinstance(value, Tensor) and value.is_floating_point():
            state[name] = value.float()
    return state


def load_full_state(
    model: nn.Module, masters: Mapping[Tensor, Tensor], state: dict[str, Any]
) -> dict[str, Tensor]:
    """Copies a state dict of ``full_state`` to the model's master weights. Those that it lacks
    become what the model has.

    Returns:
        The other parameters in float32, by name.
    """
    others: dict[Tensor, Tensor] = {}
    for rounded in model.parameters():
        if rounded in masters:
            masters[rounded].copy_(rounded.detach())
        else:
            others[rounded] = rounded.detach().float()
    with _parameters_replaced(model, {**masters, **others}):
        model.load_state_dict(state)
    return {name: others[p] for name, p in model.named_parameters() if p in others}


@contextlib.contextmanager
def _parameters_replaced(model: nn.Module, values: Mapping[Tensor, Tensor]) -> Iterator[None]:
    """Context in which the modules have these tensors instead of their parameters. The parameters
    themselves do not change: hooks on their gradients, which DDP has, would be lost."""
    tables = [module._parameters for module in model.modules()]
    before = [dict(table) for table in tables]
    try:
        for table in tables:
            for name, parameter in table.items():
                if parameter is not None and parameter in values:
                    table[name] = values[parameter]  # type: ignore[assignment]
        yield
    finally:
        for table, own in zip(tables, before, strict=True):
            table.update(own)
