"""``transformer-plugin report``: plots training runs on one page."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from ...files import atomic_write
from ...scoring.compare import compare
from ...scoring.scored_runs import seed_folders, short_names
from .figures import CHARTS, draw
from .page import render
from .run import read_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin report``."""
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="folder of a run, or of runs seed1, seed2, ..., or a training log",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE.html",
        help="page to write; default: report.html in the run's folder, or here for a log or"
        " several runs; PNGs go into FILE_figures/",
    )


def main(args: argparse.Namespace) -> None:
    """Writes the page and a PNG of each figure.

    Raises:
        FileNotFoundError: a run has no log.
        IsADirectoryError: ``--output`` is a folder.
        ValueError: a file is not a log of fairseq-train.
    """
    output: Path = args.output or _default_output(args.runs)
    if output.suffix != ".html":
        raise ValueError(f"--output {output}: expected a name ending in .html")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder: name a file")
    paths = [folder for path in args.runs for folder in seed_folders(path)]
    runs = [read_run(path, name) for path, name in zip(paths, short_names(paths), strict=True)]
    figures, absent = draw(runs)
    comparison = None
    if len(paths) > 1:
        lacking = {run: path for run in args.runs if (path := _lacking(run)) is not None}
        absent += [f"a comparison of scores: not of {run}: no {lacking[run]}" for run in lacking]
        scored = [run for run in args.runs if run not in lacking]
        if sum(len(seed_folders(run)) for run in scored) > 1:
            try:
                comparison = compare(scored, tests=["bootstrap"])
            except (OSError, ValueError) as error:
                absent.append(f"a comparison of scores: {error}")
    folder = output.with_name(f"{output.stem}_figures")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {figure.name for figure in figures}
    for chart in CHARTS:
        if chart.name not in drawn:  # an earlier report may have it
            (folder / f"{chart.name}.png").unlink(missing_ok=True)
    for figure in figures:
        with atomic_write(folder / f"{figure.name}.png", "wb") as file:
            file.write(figure.png)
    with atomic_write(output) as file:
        file.write(render(runs, figures, absent, comparison, datetime.now()))
    print(f"{output}, and {len(figures)} figures in {folder}")
    for run in runs:
        for text in run.missing:
            print(f"{run.name}: {text}")


def _lacking(run: Path) -> Path | None:
    """The first file missing from the run's folders that a comparison needs."""
    files = (f / name for f in seed_folders(run) for name in ("score.json", "hypotheses.txt"))
    return next((file for file in files if not file.is_file()), None)


def _default_output(runs: list[Path]) -> Path:
    folder = runs[0] if len(runs) == 1 and runs[0].is_dir() else Path()
    return folder / "report.html"
