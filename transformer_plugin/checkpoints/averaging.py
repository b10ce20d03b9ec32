"""Averages several checkpoints of one run (section 6.1)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..checkpoint_error import CheckpointError
from ..config import CHANGEABLE_FIELDS
from ..files import shown_path
from .last_checkpoints import KINDS, last_checkpoints
from .num_updates import num_updates
from .safe_loading import load
from .saving import check_output, save
from .shape_check import check_shapes

# Settings that are the same in all checkpoints of a run. Stock fairseq stores the whole command
# line as the settings of the model; some of these options may differ.
_CONSTANT = {
    "model": ("arch",),
    "task": ("task", "_name", "data", "source_lang", "target_lang"),
}

MOVING_AVERAGES = ("ema_fp32_params", "ema")  # in fairseq's extra_state


@dataclass(frozen=True)
class _Weight:
    """A tensor of a checkpoint without its values.

    Attributes:
        first_name: the tensor's first name; tied weights have several.
        counter: the tensor itself if it holds integers.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    first_name: str
    counter: Tensor | None = field(default=None, compare=False)


def average(paths: Sequence[str | Path], ema: bool = False) -> dict[str, Any]:
    """The newest checkpoint, with the mean weights of all of them.

    Sums are in float64, and only one file is in memory at a time. Tied weights stay tied. Counters
    (integer tensors) are taken from the newest checkpoint. The optimizer state is omitted.

    Args:
        ema: use the moving averages that ``--store-ema`` saves, instead of the weights.

    Raises:
        CheckpointError: the checkpoints are from different runs; the message names two of them.
    """
    if not paths:
        raise CheckpointError("no checkpoint to average was given")
    sums: dict[str, Tensor] = {}
    first: dict[str, Any] = {}
    newest: dict[str, Any] = {}
    for path in paths:
        state, tensors = _read(path, ema)
        first = first or state
        _check_same_run(paths[0], first, path, state)
        for name, weight in state["model"].items():
            if weight.first_name != name or weight.counter is not None:
                continue
            wide = torch.complex128 if weight.dtype.is_complex else torch.float64
            if name in sums:
                sums[name] += tensors[name].to(wide)  # adding two types is 7 times slower
            else:
                sums[name] = tensors[name].to(wide, copy=True)
        del tensors  # frees them before the next file is read
        if not newest or (num_updates(state) or 0) >= (num_updates(newest) or 0):
            newest = state
    model: dict[str, Tensor] = {}
    for name, weight in newest["model"].items():
        if weight.counter is not None:
            model[name] = weight.counter
        elif weight.first_name == name:
            model[name] = (sums.pop(name) / len(paths)).to(weight.dtype)
        else:
            model[name] = model[weight.first_name]
    notes = {**(newest.get("extra_state") or {}), "averaged": [str(path) for path in paths]}
    return {**newest, "model": model, "extra_state": notes}


def _read(path: str | Path, ema: bool) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A checkpoint with a ``_Weight`` in place of each tensor of its model; and the tensors."""
    state = load(path, mmap=True)  # skips the optimizer state, two thirds of a file
    if state.get("model") is None:
        raise CheckpointError(f"{path}: holds no model; give checkpoints of fairseq-train")
    check_shapes(path, state)
    state.pop("last_optimizer_state", None)
    averages = [(state.get("extra_state") or {}).pop(name, None) for name in MOVING_AVERAGES]
    tensors = (averages[0] or averages[1]) if ema else state["model"]
    if not isinstance(tensors, dict):
        raise CheckpointError(f"{path}: holds no moving average: train with --store-ema")
    names: dict[tuple[Any, ...], str] = {}
    state["model"] = {
        name: _Weight(
            tuple(tensor.shape),
            tensor.dtype,
            names.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), name),
            None if tensor.is_floating_point() or tensor.is_complex() else tensor.clone(),
        )
        for name, tensor in tensors.items()
    }
    return state, tensors


def _check_same_run(
    first: str | Path, expected: dict[str, Any], path: str | Path, state: dict[str, Any]
) -> None:
    for name in sorted(expected["model"].keys() | state["model"].keys()):
        one, other = (s["model"].get(name) for s in (expected, state))
        if one != other:
            raise CheckpointError(
                f"{path} is not of the same model as {first}: {name} is"
                f" {_describe(name, other)}, not {_describe(name, one)}"
            )
    for part in ("model", "task"):
        one, other = (_settings(s, part) for s in (expected, state))
        for key in sorted(one.keys() & other.keys()):
            if one[key] != other[key]:
                raise CheckpointError(
                    f"{path} is not of the same run as {first}: {part} {key} is"
                    f" {other[key]!r}, not {one[key]!r}"
                )


def _describe(name: str, weight: _Weight | None) -> str:
    if weight is None:
        return "absent"
    tied = f" tied to {weight.first_name}" if weight.first_name != name else ""
    return f"{str(weight.dtype).removeprefix('torch.')} {list(weight.shape)}{tied}"


def _settings(state: dict[str, Any], part: str) -> dict[str, Any]:
    """The settings of ``model`` or ``task``; old checkpoints have both in ``args``."""
    settings = (state.get("cfg") or {}).get(part) or state.get("args") or {}
    is_namespace = isinstance(settings, argparse.Namespace)
    named = vars(settings) if is_namespace else dict(settings)
    if part == "model" and not is_namespace:
        return {key: value for key, value in named.items() if key not in CHANGEABLE_FIELDS}
    return {key: named[key] for key in _CONSTANT[part] if key in named}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin average``."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--inputs", nargs="+", metavar="FILE", help="the checkpoints to average")
    which.add_argument("--last", type=int, metavar="N", help="the last N of --checkpoints")
    parser.add_argument("--checkpoints", metavar="DIR", help="folder of a run's checkpoints")
    parser.add_argument(
        "--by",
        choices=KINDS,
        default="epochs",
        help="kind of checkpoints that --last takes (default: epochs)",
    )
    parser.add_argument(
        "--allow-fewer", action="store_true", help="if there are fewer than N, average all of them"
    )
    parser.add_argument(
        "--ema", action="store_true", help="average the moving averages of --store-ema"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="checkpoint to write")


def main(args: argparse.Namespace) -> None:
    """Averages and writes ``--output``."""
    paths = args.inputs
    if paths is None:
        if args.checkpoints is None or args.last < 1:
            raise ValueError("--last N (at least 1) needs --checkpoints DIR")
        paths = last_checkpoints(args.checkpoints, args.last, args.by, args.allow_fewer)
    check_output(args.output, *paths)
    save(average(paths, args.ema), args.output)
    names = ", ".join(Path(path).name for path in paths)
    number = f"{len(paths)} checkpoint{'s' * (len(paths) > 1)}"
    print(f"mean of {number} ({names}): {shown_path(Path(args.output))}")
