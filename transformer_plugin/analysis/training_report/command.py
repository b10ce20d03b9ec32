"""``transformer-plugin report``: runs side by side, on one page."""

from __future__ import annotations

import argparse
import os
from datetime import datetime
from pathlib import Path

from .figures import draw
from .page import render
from .run import read_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin report``."""
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="folder of a run, or its training log"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE.html",
        help="default: report.html in the run's folder, or here for a log or several runs;"
        " PNGs go into FILE_figures/",
    )


def main(args: argparse.Namespace) -> None:
    """Writes the page and a PNG of each figure.

    Raises:
        FileNotFoundError: a run has no log.
        ValueError: a log is none of fairseq-train.
    """
    output: Path = args.output or _default_output(args.runs)
    if output.suffix != ".html":
        raise ValueError(f"--output {output}: expected a name that ends in .html")
    runs = [read_run(path, name) for path, name in zip(args.runs, _names(args.runs), strict=True)]
    figures, absent = draw(runs)
    folder = output.with_name(f"{output.stem}_figures")
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        _write(folder / f"{figure.name}.png", figure.png)
    _write(output, render(runs, figures, absent, datetime.now()).encode())
    print(f"{output}, and {len(figures)} figures in {folder}")
    for run in runs:
        for text in run.missing:
            print(f"{run.name}: {text}")


def _default_output(runs: list[Path]) -> Path:
    folder = runs[0] if len(runs) == 1 and runs[0].is_dir() else Path()
    return folder / "report.html"


def _names(paths: list[Path]) -> list[str]:
    """Short names of runs: the last part of their paths, or all of it where that is not unique."""
    short = [path.resolve().name.removesuffix(".log") for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _write(path: Path, contents: bytes) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(contents)
    os.replace(partial, path)
