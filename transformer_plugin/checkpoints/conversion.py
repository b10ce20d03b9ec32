"""Checkpoints of the plugin as stock fairseq reads them, and stock ones as the plugin does."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import Any

import torch

from .optimizer_order import parameter_shapes, reorder
from .safe_loading import CheckpointError, load
from .saving import save
from .stock_settings import completed_settings, to_plugin, to_stock

_VERSIONS = ("encoder.version", "decoder.version")
_NAMES = {  # the plugin's, stock fairseq's
    "criterion_name": ("VaswaniCrossEntropy", "LabelSmoothedCrossEntropyCriterion"),
    "optimizer_name": ("VaswaniAdam", "FairseqAdam"),
}
_OURS_ALONE = ("fp16", "cpu", "fidelity", "length_penalty", "stop_rule")
_STOCK_TASK = {"fp16": False, "cpu": False, "fidelity": "fairseq"}


def convert(state: dict[str, Any], to: str) -> dict[str, Any]:
    """A checkpoint for the other side; tensors of model and optimizer keep every bit.

    Args:
        to: ``stock`` or ``plugin``.

    Raises:
        CheckpointError: it is no checkpoint of a Transformer of the other side.
        NoSuchForm: an option stands in the way.
    """
    cfg = state.get("cfg") or {}
    header = cfg.get("model") or state.get("args")
    if not isinstance(header, dict | Namespace) or not isinstance(state.get("model"), dict):
        raise CheckpointError("holds no model and settings: give a checkpoint of fairseq-train")
    is_ours = isinstance(header, dict) and str(header.get("_name", "")).startswith("vaswani_")
    if is_ours != (to == "stock"):
        raise CheckpointError(f"the checkpoint is {'the plugin' if is_ours else 'stock'}'s already")
    if to == "stock":
        settings = completed_settings(header)
        args = to_stock(settings)
    else:
        args = header if isinstance(header, Namespace) else Namespace(**header)
        settings = to_plugin(args)
        args = to_stock(settings)
    model = _tensors(state["model"], settings, to)
    converted = {
        **state,
        "args": None,
        "cfg": {**cfg, "model": args if to == "stock" else settings, "task": _task(state, to)},
        "model": model,
    }
    converted["optimizer_history"] = [
        _renamed_history(entry, to) for entry in state.get("optimizer_history") or []
    ]
    optimizer = state.get("last_optimizer_state")
    if optimizer and "state" in optimizer:
        shapes = parameter_shapes(settings, args, model)
        converted["last_optimizer_state"] = reorder(optimizer, *shapes, to)
    return converted


def _tensors(model: dict[str, Any], settings: dict[str, Any], to: str) -> dict[str, Any]:
    tensors = {name: tensor for name, tensor in model.items() if name not in _VERSIONS}
    if "decoder.output_projection.weight" not in tensors:  # before fairseq 0.10
        old = "decoder.embed_out" if settings["untie_embeddings"] else "decoder.embed_tokens.weight"
        tensors["decoder.output_projection.weight"] = tensors[old]
        tensors.pop("decoder.embed_out", None)
    if to == "stock":
        tensors.update((name, torch.tensor([3.0])) for name in _VERSIONS)
    return tensors


def _task(state: dict[str, Any], to: str) -> dict[str, Any]:
    cfg = state.get("cfg") or {}
    old = vars(state["args"]) if state.get("args") is not None else {}
    keys = ("data", "source_lang", "target_lang", "left_pad_source", "left_pad_target")
    task = dict(cfg.get("task") or {key: old[key] for key in keys if key in old})
    for name in _OURS_ALONE:
        task.pop(name, None)
    if to == "stock":
        return {**task, "_name": "translation"}
    return {**task, **_STOCK_TASK, "_name": "vaswani_translation"}


def _renamed_history(entry: dict[str, Any], to: str) -> dict[str, Any]:
    renamed = dict(entry)
    for key, (ours, stock) in _NAMES.items():
        before, after = (ours, stock) if to == "stock" else (stock, ours)
        if renamed.get(key) == before:
            renamed[key] = after
    return renamed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin convert``."""
    parser.add_argument("input", metavar="IN.pt")
    parser.add_argument("output", metavar="OUT.pt")
    parser.add_argument("--to", choices=("stock", "plugin"), required=True)


def main(args: argparse.Namespace) -> None:
    """Converts and writes the output."""
    try:
        converted = convert(load(args.input), args.to)
    except ValueError as error:
        raise ValueError(f"{args.input}: {error}") from None
    save(converted, args.output)
    print(f"checkpoint for {args.to}: {args.output}")
    if args.to == "stock":
        print(
            "note: length penalty, stop rule and maximum length are options of search, not of the"
            " checkpoint: stock fairseq has no GNMT penalty ((5 + len) / 6)^alpha, only len^alpha"
        )
