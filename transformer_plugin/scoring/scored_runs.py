"""Reads the translations of scored runs, and the test set that they share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import checksum
from ..text_lines import check_plain, read_lines
from .score_file import ignores_case, read_scores, reference_digest
from .significance import System
from .translated_set import check_scored


@dataclass(frozen=True)
class TestSet:
    """A test set.

    Attributes:
        reference: file with one reference per line.
        references: its lines.
        lowercase: case is ignored.
    """

    reference: Path
    references: list[str]
    lowercase: bool


def described(reference: Path) -> dict[str, str]:
    """The entry of a reference file in score.json: its path and sha256.

    Raises:
        ValueError: it is a pipe, which can be read only once.
    """
    if not reference.is_file():
        raise ValueError(f"{reference} is not a file: write the references to one first")
    return {"file": str(reference.resolve()), "sha256": checksum(reference)}


def is_reference_of(path: Path, scores: dict[str, Any]) -> bool:
    """Whether a file has the references of a score.json that names them."""
    return path.is_file() and checksum(path) == reference_digest(scores)


def read_systems(
    runs: Sequence[Path],
    reference: Path | None = None,
    lowercase: bool = False,
    seeds: Sequence[int] = (),
) -> tuple[list[System], TestSet]:
    """The systems in ``runs``, each of which is one of

    - the folder of a scored run, with hypotheses.txt and score.json,
    - a folder that contains such folders ``seed1``, ``seed2``, ..., one for each training run, or
      has them in its folder ``seeds``,
    - a file with one translation per line, which needs ``reference``.

    Args:
        reference: None = the one in the runs' score.json.
        lowercase: ignore case; for runs, score.json decides.
        seeds: see ``seed_folders``.

    Raises:
        OSError: a file is missing.
        ValueError: the runs were scored on different test sets, or a file has another form.
    """
    for run in runs:
        if not run.exists():
            raise FileNotFoundError(f"{run}: no such run; expected runs/EXPERIMENT or a text file")
    places = [seed_folders(run, seeds) for run in runs]
    flat = [folder for folders in places for folder in folders]
    if len(set(map(Path.resolve, flat))) < len(flat):
        raise ValueError("a run is given twice: give different runs")
    test_set = _test_set(flat, reference, lowercase)
    systems = [
        System(name, [_translations(folder, test_set) for folder in folders])
        for name, folders in zip(short_names(runs), places, strict=True)
    ]
    return systems, test_set


def seed_folders(run: Path, seeds: Sequence[int] = ()) -> list[Path]:
    """The folders ``seed1``, ``seed2``, ... in ``run`` or in ``run/seeds``, in this order; or
    ``run`` itself.

    Args:
        seeds: only the folders of these seeds; empty: ``run`` itself if it is scored, or all.

    Raises:
        FileNotFoundError: there is no folder of one of ``seeds``.
    """
    if not seeds and (run / "hypotheses.txt").exists():
        return [run]
    numbers = {
        folder: int(match[1])
        for folder in [*run.glob("seed*/"), *run.glob("seeds/seed*/")]
        if (match := re.fullmatch(r"seed(\d+)", folder.name))
    }
    if missing := sorted({*seeds} - {*numbers.values()}):
        raise FileNotFoundError(f"{run}: there is no run of seed {missing[0]}")
    folders = sorted(numbers, key=lambda folder: numbers[folder])
    return [folder for folder in folders if not seeds or numbers[folder] in seeds] or [run]


def short_names(runs: Sequence[Path]) -> list[str]:
    """The last part of each path, without ``.log``; whole paths if these are not unique."""
    short = [run.resolve().name.removesuffix(".log") for run in runs]
    return short if len(set(short)) == len(short) else [str(run) for run in runs]


def _test_set(runs: list[Path], reference: Path | None, lowercase: bool) -> TestSet:
    scores = {run: _scores(run) for run in runs if run.is_dir()}
    scored = {run: each for run, each in scores.items() if "reference" in each}
    for name, value_of in (("test sets", reference_digest), ("treatments of case", ignores_case)):
        groups = {value_of(each): run for run, each in scored.items()}
        if len(groups) > 1:
            one, other, *_ = groups.values()
            raise ValueError(f"{one} and {other} were scored on different {name}: not comparable")
    if scored:
        lowercase = ignores_case(next(iter(scored.values())))
    if reference is None:
        if len(scored) < len(runs):
            without = next(run for run in runs if run not in scored)
            if "f1" in scores.get(without, {}):
                raise ValueError(f"{without}: a parser has F1; BLEU and chrF are compared here")
            raise ValueError(
                f"{without}: no score.json names its references: give --reference, or score it"
                " again (recipes/score.sh EXPERIMENT)"
            )
        reference = _named_reference(scored)
    elif scored and checksum(reference) != reference_digest(next(iter(scored.values()))):
        raise ValueError(f"{reference} is not the reference that {next(iter(scored))} names")
    lines = read_lines(reference)
    if not lines:
        raise ValueError(f"{reference} is empty: expected one reference per line")
    return TestSet(reference, lines, lowercase)


def _scores(run: Path) -> dict[str, Any]:
    try:
        scores = read_scores(run)
    except FileNotFoundError:
        return {}
    check_scored(run, scores)
    return scores


def _named_reference(scored: dict[Path, dict[str, Any]]) -> Path:
    """The first of the named files that has not changed."""
    for scores in scored.values():
        path = Path(scores["reference"]["file"])
        if is_reference_of(path, scores):
            return path
    raise FileNotFoundError(
        f"{path}: the references are missing or have changed since the runs were scored: give"
        " --reference"
    )


def _translations(run: Path, test_set: TestSet) -> list[str]:
    path = run / "hypotheses.txt" if run.is_dir() else run
    if not path.exists():
        raise FileNotFoundError(f"{path}: no translations; recipes/generate.sh writes them")
    lines = read_lines(path)
    if len(lines) != len(test_set.references):
        raise ValueError(
            f"{path} has {len(lines)} lines, {test_set.reference} {len(test_set.references)}:"
            " they must be translations of the same test set"
        )
    check_plain(path, lines)
    return lines
