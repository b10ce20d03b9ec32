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
    parser.add_argument("--data", type=Path, metavar="DATA-BIN", help="binarised data to check")
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
    if args.data is not None:
        from .data import find_in_data

        yield from find_in_data(args.data)
    if args.path is not None:
        from .checkpoint import find_in_checkpoint

        yield from find_in_checkpoint(args.path, args.data)
