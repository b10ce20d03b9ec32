"""Runs a benchmark from its command line to its table and files."""

from __future__ import annotations

import json
import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Collection
from contextlib import ExitStack
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


def leave_out(system: str, precision: str, error: RuntimeError, peers: Collection[str]) -> None:
    """Says that a peer is left out, and why.

    Raises:
        RuntimeError: ``error``, if the system is not one of the peers.
    """
    if system not in peers:
        raise error
    reason = str(error).rstrip().splitlines()[-1]
    print(f"{system} {precision} is left out: {reason}", file=sys.stderr)


def run_benchmark(
    args: Namespace,
    what: str,
    measure: Callable[[Namespace, ExitStack], Rows],
    print_table: Callable[[Rows], None],
    write_plot: Callable[[Rows, Path], None],
) -> None:
    """Measures, prints the table, and writes it to the requested files.

    Args:
        args: the command line, with ``device``, ``json`` and ``plot``.
        what: describes the measurement, for the first line.
        measure: returns the rows; its files may exist as long as the stack.
    """
    logging.disable(logging.INFO)
    if gpu_is_missing(args.device):
        return
    print(f"{what}, {args.device}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    with ExitStack() as stack:
        try:
            rows = measure(args, stack)
        except RuntimeError as error:
            sys.exit(str(error))
    print_table(rows)
    if args.json:
        with atomic_write(args.json) as file:
            file.write(f"{json.dumps(rows, indent=1)}\n")
    if args.plot:
        write_plot(rows, args.plot)
