"""Checkpoints of the plugin as stock fairseq reads them, and stock ones as the plugin does."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf
from torch import Tensor

from ..model import VaswaniTransformer
from .both_models import build_both
from .optimizer_order import is_adam, reorder
from .safe_loading import CheckpointError, allow_fairseq_types, load
from .saving import save
from .stock_settings import check_is_transformer, completed_settings, to_plugin, to_stock
from .training_settings import renamed_history, resume_flags, training_sections

_VERSIONS = ("encoder.version", "decoder.version")
_OURS_ALONE = ("fp16", "cpu", "fidelity", "length_penalty", "stop_rule")
_STOCK_TASK = {"fp16": False, "cpu": False, "fidelity": "fairseq"}


def read(path: str | Path) -> dict[str, Any]:
    """A checkpoint's contents, brought up to date by fairseq where an older release wrote it.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it is damaged, or no checkpoint of fairseq-train.
    """
    state = load(path)
    if isinstance(state, dict) and isinstance(state.get("args"), Namespace):
        allow_fairseq_types()
        try:
            state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
            state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
        except (KeyError, TypeError, AttributeError):  # what fairseq looks for is not there
            state = {}
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        state = {}
    if not isinstance((state.get("cfg") or {}).get("model"), dict | Namespace):
        raise CheckpointError(
            f"{path}: holds no model and settings: give a checkpoint of fairseq-train"
        )
    return state


def convert(state: dict[str, Any], to: str) -> dict[str, Any]:
    """A checkpoint for the other side; tensors of model and optimizer keep every bit.

    Args:
        state: what ``read`` gave.
        to: ``stock`` or ``plugin``.

    Raises:
        CheckpointError: it is no checkpoint of a Transformer of the other side.
        NoSuchForm: an option stands in the way.
    """
    cfg = state["cfg"]
    header = cfg["model"]
    is_ours = isinstance(header, dict) and str(header.get("_name", "")).startswith("vaswani_")
    if is_ours != (to == "stock"):
        raise CheckpointError(
            f"the checkpoint is {'the plugin' if is_ours else 'stock fairseq'}'s already"
        )
    if is_ours:
        settings = completed_settings(header)
    else:
        args = header if isinstance(header, Namespace) else Namespace(**header)
        check_is_transformer(args)
        settings = to_plugin(args)
    args = to_stock(settings)
    both = build_both(settings, args, state["model"])
    shapes = both.parameter_shapes()
    stored = dict(state["model"])
    if not is_ours:
        both.stock.upgrade_state_dict(stored)  # names of older releases
    model = _checked(stored, both.ours)
    converted = {
        **state,
        "args": None,
        "cfg": {
            **cfg,
            "model": args if to == "stock" else settings,
            "task": _task(cfg.get("task") or {}, to),
            **training_sections(cfg, to),
        },
        "model": model | (dict.fromkeys(_VERSIONS, torch.tensor([3.0])) if is_ours else {}),
        "optimizer_history": renamed_history(state.get("optimizer_history"), to),
    }
    if "common" in cfg:
        converted["cfg"]["common"] = {**cfg["common"], "user_dir": None}
    optimizer = state.get("last_optimizer_state")
    if optimizer is not None:
        # Its tensors have no names: their order is known where the model's names are today's.
        # The output projection of a tied model was not stored before fairseq 0.10.
        new = model.keys() - state["model"].keys()
        tied = set() if settings["untie_embeddings"] else {"decoder.output_projection.weight"}
        if is_adam(optimizer) and new <= tied:
            converted["last_optimizer_state"] = reorder(optimizer, *shapes, to)
        else:
            del converted["last_optimizer_state"]
    return converted


def _checked(stored: dict[str, Tensor], ours: VaswaniTransformer) -> dict[str, Tensor]:
    """The model's tensors, if they are those of its settings."""
    unneeded = (*_VERSIONS, "embed_positions._float_tensor", "embed_positions.weights")
    tensors = {name: t for name, t in stored.items() if not name.endswith(unneeded)}
    expected = {name: t.shape for name, t in ours.state_dict().items()}
    found = {name: t.shape for name, t in tensors.items()}
    if found != expected:
        name = min(k for k in expected.keys() | found.keys() if found.get(k) != expected.get(k))
        shapes = [list(s[name]) if name in s else "no such tensor" for s in (expected, found)]
        raise CheckpointError(
            f"{name}: expected {shapes[0]} by the model's settings, found {shapes[1]}: the"
            " checkpoint is not of a plain Transformer, or not whole"
        )
    return tensors


def _task(old: dict[str, Any], to: str) -> dict[str, Any]:
    task = {name: value for name, value in old.items() if name not in _OURS_ALONE}
    if to == "stock":
        return {**task, "_name": "translation"}
    return {**task, **_STOCK_TASK, "_name": "vaswani_translation"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin convert``."""
    parser.add_argument("input", metavar="IN.pt")
    parser.add_argument("output", metavar="OUT.pt")
    parser.add_argument("--to", choices=("stock", "plugin"), required=True)


def main(args: argparse.Namespace) -> None:
    """Converts and writes the output."""
    state = read(args.input)
    try:
        converted = convert(state, args.to)
    except ValueError as error:
        raise ValueError(f"{args.input}: {error}") from None
    save(converted, args.output)
    print(f"checkpoint for {args.to}: {args.output}")
    if state.get("last_optimizer_state") and "last_optimizer_state" not in converted:
        print("note: without the optimizer's state, which is not Adam's of today's layout")
    flags = ["--restore-file", args.output, *resume_flags(converted["cfg"], args.to)]
    plugin = "" if args.to == "stock" else ' --user-dir "$(transformer-plugin path)"'
    print(f"to train on: fairseq-train DATA-BIN {shlex.join(flags)}{plugin}")
    if args.to == "stock":
        print(
            "note: length penalty, stop rule and maximum length are options of search, not of the"
            " checkpoint: stock fairseq has no GNMT penalty ((5 + len) / 6)^alpha, only len^alpha"
        )
