"""``transformer-plugin compare``: scores of several systems, with significance tests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import atomic_write, check_target
from .scored_runs import described, read_systems, seed_folders
from .significance import METRICS, TESTS, paired_test, seed_scores

TITLES = {"bleu": "BLEU", "chrf": "chrF"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin compare``."""
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="folder of a scored run, or of the"
        " runs of several seeds, or a file of translations; the first is the baseline"
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[], metavar="SEED", help="only"
                        " these seeds of each RUN; default: all, or the run itself")  # fmt: skip
    parser.add_argument(
        "--reference",
        type=Path,
        help="references, one per line; default: those that the runs' score.json names",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case; only for files")
    parser.add_argument("--test", choices=[*TESTS, "both"], default="both", help="paired bootstrap"
                        " and approximate randomisation (default both)")  # fmt: skip
    parser.add_argument("--samples", type=int, default=0, help="number for each test"
                        " (default: sacrebleu's 1,000 resamples and 10,000 trials)")  # fmt: skip
    parser.add_argument(
        "--output", type=Path, metavar="FILE.json", help="file for the figures as JSON"
    )


def main(args: argparse.Namespace) -> None:
    """Prints the comparison.

    Raises:
        OSError: a file is missing.
        ValueError: the runs cannot be compared; the message gives the reason.
    """
    if args.samples < 0:
        raise ValueError("--samples must be at least 1, or 0 for sacrebleu's default")
    if args.output:
        check_target(args.output, args.reference, *_inputs(args.runs, args.seeds))
    tests = list(TESTS) if args.test == "both" else [args.test]
    comparison = compare(args.runs, args.reference, args.lowercase, tests, args.samples, args.seeds)
    if args.output:
        with atomic_write(args.output) as file:
            file.write(json.dumps(comparison, indent=1) + "\n")
    for run in args.runs:
        if not args.seeds and (run / "hypotheses.txt").exists() and any(run.glob("seeds/seed*/")):
            print(f"{run} is a run itself; to compare its seeds, give {run / 'seeds'}")
    print("\n".join(_lines(comparison)))


def compare(
    runs: Sequence[Path],
    reference: Path | None = None,
    lowercase: bool = False,
    tests: Sequence[str] = tuple(TESTS),
    samples: int = 0,
    seeds: Sequence[int] = (),
) -> dict[str, Any]:
    """Compares systems.

    Args:
        runs, seeds: see ``read_systems``.
        samples: number for each test; 0: sacrebleu's defaults.

    Returns:
        ``systems``: see ``seed_scores``; ``tests`` by name: see ``paired_test``, empty for a single
        system; ``reference``, and ``sentences``, the number of its lines.

    Raises:
        OSError: a file is missing.
        ValueError: the runs cannot be compared; the message gives the reason.
    """
    systems, test_set = read_systems(runs, reference, lowercase, seeds)
    lines, lowercase = test_set.references, test_set.lowercase
    scores = seed_scores(systems, lines, lowercase)
    return {
        "reference": described(test_set.reference),
        "sentences": len(lines),
        "systems": [
            {**found, "run": str(run.resolve())} for run, found in zip(runs, scores, strict=True)
        ],
        "tests": {
            test: paired_test(systems, lines, test, lowercase, samples)
            for test in (tests if len(systems) > 1 else ())
        },
    }


def rows(comparison: dict[str, Any], metric: str) -> list[list[str]]:
    """Name, score, 95 % interval and p-values of each system, as text."""
    table = []
    for i, system in enumerate(comparison["systems"]):
        found = system[metric]
        baseline = i == 0 and bool(comparison["tests"])
        cells = [system["name"] + " (baseline)" * baseline, f"{found['mean']:.2f}"]
        if found["deviation"] is not None:
            cells[-1] += f" ± {found['deviation']:.2f}"
        for test, results in comparison["tests"].items():
            result = results["systems"][i][metric]
            if result["ci"] is not None:
                low, high = result["mean"] - result["ci"], result["mean"] + result["ci"]
                cells.append(f"95 %: {low:.2f} to {high:.2f}")
            cells.append("" if baseline else f"p = {result['p_value']:.4f} ({test})")
        table.append(cells)
    return table


def title(comparison: dict[str, Any], metric: str) -> str:
    """The title of the table of ``rows``."""
    seeds = max(len(system[metric]["scores"]) for system in comparison["systems"])
    many = f", mean and standard deviation of {seeds} seeds" if seeds > 1 else ""
    return f"{TITLES[metric]} of {comparison['sentences']:,} sentences{many}"


def _inputs(runs: Sequence[Path], seeds: Sequence[int]) -> list[Path]:
    folders = [folder for run in runs for folder in seed_folders(run, seeds)]
    names = ("hypotheses.txt", "score.json", "generate.log")
    return folders + [folder / name for folder in folders for name in names]


def _lines(comparison: dict[str, Any]) -> list[str]:
    lines = [f"references: {comparison['reference']['file']}"]
    for metric in METRICS:
        lines += ["", title(comparison, metric), *_aligned(rows(comparison, metric))]
        for test, found in comparison["tests"].items():
            lines.append(f"{test}: {found['signatures'][metric]}")
    return lines


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
