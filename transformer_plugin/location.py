"""``transformer-plugin path``: the directory of the package."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """``transformer-plugin path`` takes none."""


def main(_args: argparse.Namespace) -> None:
    """Prints the directory to give to ``--user-dir``."""
    print(Path(__file__).resolve().parent)
