"""``transformer-plugin doctor``: finds problems in the installation, data or a checkpoint."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from .environment import find_in_environment
from .finding import PROBLEM, Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin doctor``."""
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DATA-BIN",
        help="binarised data to check, or the folder of a run that has it",
    )
    parser.add_argument("--path", type=Path, metavar="CKPT", help="a checkpoint to check")


def main(args: argparse.Namespace) -> int:
    """Prints each finding as soon as it is known; returns 1 if one is a problem."""
    problem = False
    for finding in _all(args):
        problem |= finding.level == PROBLEM
        print(f"{finding.level:8}{finding.text}")
        if finding.remedy:
            print(f"{'':8}-> {finding.remedy}", flush=True)
    return int(problem)


def _all(args: argparse.Namespace) -> Iterator[Finding]:
    yield from find_in_environment()
    if "fairseq" not in sys.modules:  # it does not import, which has been said
        return
    data = args.data
    if data is not None:
        from ..prepared_data import prepared_data
        from .data import find_in_data

        binarised = prepared_data(data) / "data-bin"
        data = binarised if binarised.is_dir() else data
        yield from find_in_data(data)
    if args.path is not None:
        from .checkpoint import find_in_checkpoint

        yield from find_in_checkpoint(args.path, data)
