"""Exports models to a directory for CTranslate2 or for Hugging Face's transformers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...config import is_plugin_model
from ...files import atomic_folder
from ..meta_models import plugin_model
from ..shape_check import model_tensors
from ..stock_settings import check_is_ours, completed_settings
from . import ctranslate2, huggingface
from .conversion import convert, read
from .equations_check import check_equations, note_own_architecture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin export``."""
    parser.add_argument("input", metavar="IN.pt", help="a checkpoint, the plugin's or stock")
    parser.add_argument("output", metavar="OUT-DIR", help="folder to write")
    parser.add_argument(
        "--data", required=True, metavar="DATA-BIN", help="folder of dict.LANGUAGE.txt"
    )
    parser.add_argument("--to", choices=("ctranslate2", "huggingface"), required=True,
                        help="software that will read OUT-DIR")  # fmt: skip
    parser.add_argument(
        "--quantization",
        choices=ctranslate2.QUANTIZATIONS,
        help="type of the weights, for CTranslate2 (default: float32)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing OUT-DIR")


def main(args: argparse.Namespace) -> None:
    """Writes a temporary directory beside OUT-DIR and renames it when it is complete.

    Raises:
        FileExistsError: OUT-DIR exists without ``--force``, or is not an exported model.
        UnsupportedModel: the other software does not support an option of the model.
    """
    output = Path(args.output)
    is_empty = output.is_dir() and not any(output.iterdir())
    if output.exists() and not is_empty:
        if not _is_exported(output):
            raise FileExistsError(f"{output} is not an exported model: give another name")
        if not args.force:
            raise FileExistsError(f"{output} already exists: give another name, or --force")
    if args.quantization and args.to != "ctranslate2":
        raise ValueError("--quantization is for CTranslate2 only: omit it with --to huggingface")
    state = read(args.input)
    try:
        state = _of_the_plugin(state)
        with atomic_folder(output.resolve()) as folder:  # a link stays
            if args.to == "ctranslate2":
                note = ctranslate2.write(state, folder, args.data, args.quantization)
            else:
                note = huggingface.write(state, folder, args.data)
    except ValueError as error:
        raise ValueError(f"{args.input}: {error}") from None
    print(f"model for {args.to}: {output}")
    note_own_architecture(state["cfg"]["model"].get("_name"))
    print(f"note: {note}")


def _is_exported(folder: Path) -> bool:
    weights = (folder / "model.bin", folder / "model.safetensors")
    return (folder / "config.json").is_file() and any(path.is_file() for path in weights)


def _of_the_plugin(state: dict[str, Any]) -> dict[str, Any]:
    model = state["cfg"]["model"]
    if not is_plugin_model(model):
        return convert(state, "plugin")
    check_is_ours(model)
    check_equations(model)
    settings, stored = completed_settings(model), state["model"]
    return {**state, "model": model_tensors(stored, plugin_model(settings, stored))}
