"""Finds the source and the reference texts that a run was scored with."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from ..scoring.scored_runs import is_reference_of


def scored_texts(
    scores: dict[str, Any], data: Path, evaluated: str, settings: dict[str, Any] | None
) -> tuple[Path, Path]:
    """Source and reference: those of the prepared data, or else the file that score.json names and
    the source beside it. If score.json names no file, the run was scored with the prepared data.

    Args:
        scores: the contents of the run's score.json.
        data: folder of raw/ to data-bin/.
        evaluated: the translated set, such as ``test``.
        settings: those of training, if they are known.

    Raises:
        FileNotFoundError: the texts are missing, or have changed since the run was scored.
    """
    language = ((settings or {}).get("task") or {}).get("source_lang")
    try:
        source, reference = test_texts(data, evaluated)
        if "reference" not in scores or is_reference_of(reference, scores):
            return source, reference
        language = source.suffix[1:]
    except FileNotFoundError:
        if "reference" not in scores:
            raise
    named = Path(scores["reference"]["file"])
    if not is_reference_of(named, scores):
        raise FileNotFoundError(
            f"{named}: the references are missing or have changed since the run was scored:"
            " translate and score again (recipes/generate.sh EXPERIMENT, then recipes/score.sh)"
        )
    if language is None:
        raise FileNotFoundError(
            f"{named}: the source language is not known: there is no binarised {evaluated} set in"
            f" {data / 'data-bin'}, and the log has no settings"
        )
    return named.with_suffix(f".{language}"), named


def test_texts(data: Path, evaluated: str) -> tuple[Path, Path]:
    """Source and reference of a set, in the languages of data-bin. If the set was held out of the
    training text, they are its texts before cleaning.

    Raises:
        FileNotFoundError: there is no such set.
    """
    names = [path.name.split(".") for path in (data / "data-bin").glob(f"{evaluated}.*-*.*.idx")]
    for (_, pair, source, _), (_, _, target, _) in itertools.permutations(names, 2):
        if pair == f"{source}-{target}":  # either may have a hyphen, such as zh-CN
            raw, held_out = data / "raw" / evaluated, data / "clean" / f"{evaluated}.raw"
            stem = held_out if Path(f"{held_out}.{target}").exists() else raw
            return Path(f"{stem}.{source}"), Path(f"{stem}.{target}")
    raise FileNotFoundError(f"{data / 'data-bin'}: no binarised {evaluated} set")
