"""Converts checkpoints of the plugin for stock fairseq, and stock ones for the plugin."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils
from fairseq.tasks.translation import TranslationConfig
from omegaconf import OmegaConf

from ...checkpoint_error import CheckpointError
from ...config import is_plugin_model
from ..averaging import MOVING_AVERAGES
from ..fairseq_loading import protect_loading
from ..meta_models import parameter_shapes, plugin_model, stock_model
from ..safe_loading import load
from ..saving import check_output, save
from ..shape_check import check_shapes, model_tensors
from ..stock_settings import (
    STOCK_VERSION,
    check_is_ours,
    check_is_transformer,
    completed_settings,
    to_plugin,
    to_stock,
    with_learned_positions,
)
from .equations_check import check_equations, note_own_architecture
from .optimizer_order import is_adam, reorder
from .training_settings import renamed_history, resume_flags, training_sections

_STOCK_TASK = {"fp16": False, "cpu": False, "fidelity": "fairseq"}


def read(path: str | Path) -> dict[str, Any]:
    """The contents of a checkpoint; fairseq upgrades those of its older releases.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it is damaged, not a checkpoint of fairseq-train, or its tensors do not
            match its settings.
    """
    state = load(path, mmap=True)  # skips the optimizer state unless it is converted
    if state.get("args") is not None:
        protect_loading()
        try:
            state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
            state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
        except (KeyError, TypeError, AttributeError):  # a part that fairseq needs is missing
            state = {}
    settings = (state.get("cfg") or {}).get("model")
    if state.get("model") is None or not isinstance(settings, dict | Namespace):
        raise CheckpointError(
            f"{path}: holds no model and settings: give a checkpoint of fairseq-train"
        )
    check_shapes(path, state)
    return state


def convert(state: dict[str, Any], to: str) -> dict[str, Any]:
    """Converts a checkpoint; the values of model and optimizer tensors do not change.

    Args:
        state: the result of ``read``.
        to: ``stock`` or ``plugin``.

    Raises:
        CheckpointError: it is not a checkpoint of the other side's Transformer.
        UnsupportedModel: the other side cannot represent the model.
    """
    cfg = state["cfg"]
    header = cfg["model"]
    is_ours = is_plugin_model(header)
    if is_ours != (to == "stock"):
        raise CheckpointError(
            f"the checkpoint is already {'the plugin' if is_ours else 'stock fairseq'}'s"
        )
    if is_ours:
        check_is_ours(header)
        check_equations(header)
        settings, tables = with_learned_positions(completed_settings(header))
        if tables:  # the optimizer has no state for them
            state = {**state, "model": {**state["model"], **tables}, "last_optimizer_state": None}
        added = {**tables, **STOCK_VERSION}
    else:
        added = {}
        args = header if isinstance(header, Namespace) else Namespace(**header)
        check_is_transformer(args)
        settings = to_plugin(args)
    args = to_stock(settings)
    stored = dict(state["model"])
    ours, stock = plugin_model(settings, stored), stock_model(args, stored)
    shapes = parameter_shapes(ours), parameter_shapes(stock)
    if not is_ours:
        stock.upgrade_state_dict(stored)  # names of older releases
    model = model_tensors(stored, ours)
    averages = {
        name: {**model_tensors({**average, **added}, ours), **added}
        for name, average in (state.get("extra_state") or {}).items()
        if name in MOVING_AVERAGES and average
    }
    converted = {
        **state,
        "args": None,
        "cfg": {
            **cfg,
            "model": args if to == "stock" else settings,
            "task": _task(cfg.get("task") or {}, to),
            **training_sections(cfg, to),
        },
        "model": {**model, **added},
        "optimizer_history": renamed_history(state.get("optimizer_history"), to),
    }
    if averages:
        converted["extra_state"] = {**state["extra_state"], **averages}
    if "common" in cfg:
        converted["cfg"]["common"] = {**cfg["common"], "user_dir": None}
    optimizer = state.get("last_optimizer_state")
    if optimizer is not None:
        # The optimizer's tensors have no names. Their order is known only if the model has current
        # names. Before fairseq 0.10 a tied output projection was not stored.
        new = model.keys() - state["model"].keys()
        tied = set() if settings["untie_embeddings"] else {"decoder.output_projection.weight"}
        if is_adam(optimizer) and new <= tied:
            converted["last_optimizer_state"] = reorder(optimizer, *shapes, to)
        else:
            del converted["last_optimizer_state"]
    return converted


def _task(old: dict[str, Any] | Namespace, to: str) -> dict[str, Any] | Namespace:
    if isinstance(old, Namespace):  # a fairseq task without a dataclass; both sides have it
        return old
    if to == "plugin":
        return {**old, **_STOCK_TASK, "_name": "vaswani_translation"}
    stock = {field.name for field in fields(TranslationConfig)}
    kept = {name: value for name, value in old.items() if name in stock}
    return {**kept, "_name": "translation"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin convert``."""
    parser.add_argument("input", metavar="IN.pt", help="a checkpoint of the other kind")
    parser.add_argument("output", metavar="OUT.pt", help="checkpoint to write")
    parser.add_argument(
        "--to", choices=("stock", "plugin"), required=True, help="who will read OUT.pt"
    )


def main(args: argparse.Namespace) -> None:
    """Converts a checkpoint, and prints the flags with which to train on from it."""
    check_output(args.output, args.input)
    state = read(args.input)
    try:
        converted = convert(state, args.to)
    except ValueError as error:
        raise ValueError(f"{args.input}: {error}") from None
    save(converted, args.output)
    print(f"checkpoint for {args.to}: {args.output}")
    if state.get("last_optimizer_state") and not converted.get("last_optimizer_state"):
        reason = "stock fairseq trains tables of positions"
        if args.to == "plugin":
            reason = "the checkpoint has the tensor names of an older fairseq"
        print(f"note: the optimizer state is omitted: it is not Adam's, or {reason}")
    aim, option = "to resume training", "--restore-file"
    if not converted.get("last_optimizer_state"):
        aim, option = "to train anew from its weights", "--finetune-from-model"
    flags = [option, args.output, *resume_flags(converted["cfg"], args.to)]
    plugin = "" if args.to == "stock" else ' --user-dir "$(transformer-plugin path)"'
    print(f"{aim}: fairseq-train DATA-BIN {shlex.join(flags)}{plugin}")
    if args.to == "stock":
        settings = completed_settings(state["cfg"]["model"])
        note_own_architecture(settings["_name"])
        if settings["positional_encoding"] in ("paper", "t2t"):
            print(
                "note: stock fairseq stores this positional encoding as a table, which it trains:"
                f" sources of up to {settings['max_source_positions']:,} tokens, targets of up to"
                f" {settings['max_target_positions']:,}"
            )
        if settings["layer_norm_eps"] != 1e-5:
            print("note: stock fairseq's norms use an epsilon of 1e-5: logits differ by about 1e-5")
        print(
            "note: length penalty, stop rule and maximum length are search options, not part of the"
            " checkpoint: stock fairseq has no GNMT penalty ((5 + len) / 6)^alpha, only len^alpha"
        )
