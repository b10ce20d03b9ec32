"""Writes the results of a benchmark to files, and finds out whether it can run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from transformer_plugin.files import atomic_write

Rows = list[dict[str, Any]]


def gpu_is_missing(device: str) -> bool:
    """Whether ``--device cuda`` was given without a GPU; prints that the benchmark is skipped."""
    missing = device == "cuda" and not torch.cuda.is_available()
    if missing:
        print("skipped: --device cuda, but there is no GPU")
    return missing


def write_results(
    rows: Rows, json_file: Path | None, plot: Path | None, write_plot: Callable[[Rows, Path], None]
) -> None:
    """Writes the rows as JSON and as a plot, if these files are wanted."""
    if json_file:
        with atomic_write(json_file) as file:
            file.write(f"{json.dumps(rows, indent=1)}\n")
    if plot:
        write_plot(rows, plot)
