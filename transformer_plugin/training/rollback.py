"""Rolls a diverged run back to its last good checkpoint, and resumes in a wider precision."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any, NoReturn

import torch
from fairseq.optim import OPTIMIZER_REGISTRY

from ..checkpoints.safe_loading import load
from ..checkpoints.saving import save
from .last_good import finished_updates, set_aside
from .mixed_precision import FP16Optimizer
from .same_run import resumes

logger = logging.getLogger(__name__)
HALF = {"--fp16", "--memory-efficient-fp16", "--bf16", "--memory-efficient-bf16", "--amp"}


def wider_precision(fp16: bool, bf16: bool) -> str | None:
    """The precision to resume in on this machine: bf16 after fp16 if the GPU supports it, else
    fp32; None if the run is already in fp32."""
    if fp16 and torch.cuda.is_available() and torch.cuda.is_bf16_supported(False):
        return "bf16"
    return "fp32" if fp16 or bf16 else None


def optimizer_class(precision: str, name: str) -> str:
    """The name of fairseq's class for ``--optimizer NAME``: it refuses checkpoints of others."""
    plain: str = OPTIMIZER_REGISTRY[name].__name__
    return plain if precision == "fp32" else FP16Optimizer.__name__


def command_in(precision: str, command: list[str]) -> list[str]:
    """The command line with another precision.

    Raises:
        ValueError: it has none of fairseq's precision flags.
    """
    changed = [word for word in command if word not in HALF]
    if changed == command:
        raise ValueError("the command line has none of " + ", ".join(sorted(HALF)))
    return changed if precision == "fp32" else [*changed, f"--{precision}"]


def check_resumes(settings: Any) -> None:
    """Checks that the same command resumes from the checkpoint that ``roll_back`` writes.

    Args:
        settings: the section ``checkpoint`` of the command's settings.

    Raises:
        ValueError: it does not.
    """
    from_last = settings.restore_file == "checkpoint_last.pt"
    if settings.no_save or not from_last or not resumes(settings):
        raise ValueError(
            "the command must resume from checkpoint_last.pt, without --restore-file, --reset-*,"
            " --no-save and --no-last-checkpoints"
        )


def roll_back(
    folder: Path, last_good_update: int, precision: str, optimizer: str, shapes: list[torch.Size]
) -> NoReturn:
    """Replaces this process by the same command in ``precision``, which resumes from the newest
    checkpoint that is not later than ``last_good_update``. Later checkpoints are renamed.

    Args:
        optimizer: name of the class that fairseq uses in ``precision``.
        shapes: shapes of the trained parameters.

    Raises:
        ValueError: see ``command_in`` and ``unflattened``; nothing has been changed.
    """
    command = command_in(precision, list(sys.orig_argv))
    counted = [(finished_updates(path), path) for path in folder.glob("checkpoint*.pt")]
    good = [(n, path) for n, path in counted if n is not None and n <= last_good_update]
    later = [path for n, path in counted if n is not None and n > last_good_update]
    if good:
        state = load(max(good)[1])
        state["optimizer_history"][-1]["optimizer_name"] = optimizer
        state["last_optimizer_state"] = unflattened(state["last_optimizer_state"], shapes)
    for path in later:
        logger.warning("%s is renamed to %s", path, set_aside(path, "diverged"))
    if good:
        save(state, folder / "checkpoint_last.pt")
    logger.warning(
        "training goes back to %s and resumes in %s",
        f"update {max(good)[0]}" if good else "its start",
        precision,
    )
    for loader in multiprocessing.active_children():  # they hold the lock of the run, too
        loader.kill()
        loader.join()
    logging.shutdown()
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *command[1:]])


def unflattened(optimizer: dict[str, Any], shapes: list[torch.Size]) -> dict[str, Any]:
    """The optimizer's state with one entry for each parameter. ``--fp16`` keeps one entry for all,
    and so do other optimizers than ``vaswani_adam`` in bf16; another state is returned as it is.

    Raises:
        ValueError: the entry does not have the parameters' size.
    """
    groups = optimizer.get("param_groups", [])  # an optimizer of the user's own may have none
    if [len(group["params"]) for group in groups] != [1] or len(shapes) == 1:
        return optimizer
    sizes = [shape.numel() for shape in shapes]
    parts = {}
    for name, value in next(iter(optimizer["state"].values()), {}).items():
        if torch.is_tensor(value) and value.dim():
            if value.numel() != sum(sizes):
                raise ValueError(f"the optimizer's {name} does not have the parameters' size")
            pieces = value.split(sizes)
            parts[name] = [p.view(s).clone() for p, s in zip(pieces, shapes, strict=True)]
        else:
            # not one tensor for all: torch's optimizers count their steps in it, in place
            parts[name] = [deepcopy(value) for _shape in shapes]
    states = {i: {name: part[i] for name, part in parts.items()} for i in range(len(shapes))}
    return {"state": states, "param_groups": [{**groups[0], "params": list(states)}]}
