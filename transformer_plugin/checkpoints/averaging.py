"""The mean of several checkpoints of one run (section 6.1)."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .safe_loading import CheckpointError, load
from .saving import save

_NAMES = {  # what a checkpoint's file is called, and the group that counts
    "updates": re.compile(r"checkpoint_\d+_(\d+)\.pt"),
    "epochs": re.compile(r"checkpoint(\d+)\.pt"),
}


def average(paths: Sequence[str | Path]) -> dict[str, Any]:
    """The newest checkpoint with the mean of all of them as its weights.

    Sums are in float64, and one file is in memory at a time. The optimizer's state is left out.

    Raises:
        CheckpointError: the checkpoints are not of one run; names the two that differ.
    """
    if not paths:
        raise CheckpointError("no checkpoint to average was given")
    sums: dict[str, Tensor] = {}
    reference: dict[str, Any] = {}
    for path in paths:
        state = load(path)
        if "model" not in state:
            raise CheckpointError(f"{path}: holds no model; give checkpoints of fairseq-train")
        state.pop("last_optimizer_state", None)
        if reference:
            _check_same_run(paths[0], reference, path, state)
        for name, tensor in _distinct(state["model"]).items():
            if name not in sums:
                sums[name] = torch.zeros(tensor.shape, dtype=torch.float64)
            sums[name] += tensor.double()
        if not reference or _updates(state) >= _updates(reference):
            reference = state
    names = _first_names(reference["model"])
    means: dict[str, Tensor] = {}
    for name, tensor in reference["model"].items():
        first = names[name]
        if first not in means:
            mean = sums[first] / len(paths)
            means[first] = mean.to(tensor.dtype) if tensor.is_floating_point() else tensor
        reference["model"][name] = means[first]
    reference["extra_state"] = {
        **(reference.get("extra_state") or {}),
        "averaged": [str(path) for path in paths],
    }
    return reference


def last_checkpoints(folder: str | Path, count: int, by: str) -> list[Path]:
    """The last ``count`` checkpoints of a run's folder, newest last.

    Args:
        by: ``updates`` (checkpoint_EPOCH_UPDATES.pt) or ``epochs`` (checkpointEPOCH.pt).

    Raises:
        CheckpointError: there are fewer.
    """
    pattern = _NAMES[by]
    numbered = sorted(
        (int(match.group(1)), path)
        for path in Path(folder).glob("checkpoint*.pt")
        if (match := pattern.fullmatch(path.name))
    )
    if len(numbered) < count:
        raise CheckpointError(
            f"{folder}: {count} checkpoints by {by} were asked for, {len(numbered)} are there"
            f" ({pattern.pattern}); average fewer, or keep more with --keep-interval-updates"
            " or --keep-last-epochs"
        )
    return [path for _, path in numbered[len(numbered) - count :]]


def _distinct(model: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that share their numbers once, under the first name."""
    names = _first_names(model)
    return {name: tensor for name, tensor in model.items() if names[name] == name}


def _first_names(model: dict[str, Tensor]) -> dict[str, str]:
    """For each name the first one of the same tensor."""
    first: dict[tuple[int, torch.Size], str] = {}
    return {
        name: first.setdefault((tensor.data_ptr(), tensor.shape), name)
        for name, tensor in model.items()
    }


def _updates(state: dict[str, Any]) -> int:
    return (state.get("optimizer_history") or [{}])[-1].get("num_updates", 0)


def _check_same_run(
    first: str | Path, expected: dict[str, Any], path: str | Path, state: dict[str, Any]
) -> None:
    shapes = [{n: tuple(t.shape) for n, t in s["model"].items()} for s in (expected, state)]
    for name in shapes[0].keys() | shapes[1].keys():
        one, other = (shape.get(name, "absent") for shape in shapes)
        if one != other:
            raise CheckpointError(
                f"{path} is not of the same model as {first}: {name} is {other}, not {one}"
            )
    for part in ("model", "task"):
        one, other = (_settings(s, part) for s in (expected, state))
        for key in sorted(one.keys() & other.keys()):
            if one[key] != other[key]:
                raise CheckpointError(
                    f"{path} is not of the same run as {first}: {part} {key} is"
                    f" {other[key]!r}, not {one[key]!r}"
                )


def _settings(state: dict[str, Any], part: str) -> dict[str, Any]:
    settings = (state.get("cfg") or {}).get(part) or {}
    return vars(settings) if isinstance(settings, argparse.Namespace) else dict(settings)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin average``."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--inputs", nargs="+", metavar="FILE", help="the checkpoints to average")
    which.add_argument("--last", type=int, metavar="N", help="the last N of --checkpoints")
    parser.add_argument("--checkpoints", metavar="DIR", help="folder of a run's checkpoints")
    parser.add_argument("--by", choices=sorted(_NAMES), default="epochs", help="default: epochs")
    parser.add_argument("--output", required=True, metavar="FILE")


def main(args: argparse.Namespace) -> None:
    """Averages and writes ``--output``."""
    paths = args.inputs
    if paths is None:
        if args.checkpoints is None or args.last < 1:
            raise ValueError("--last N (at least 1) needs --checkpoints DIR")
        paths = last_checkpoints(args.checkpoints, args.last, args.by)
    for path in paths:
        print(path, file=sys.stderr)
    save(average(paths), args.output)
    print(f"mean of {len(paths)} checkpoints: {args.output}")
