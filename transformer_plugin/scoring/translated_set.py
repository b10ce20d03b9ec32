"""Finds out which set, such as ``test`` or ``valid``, a run has translated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LAST_LINE = re.compile(rb"^Generate (\S+) with beam=", re.MULTILINE)  # fairseq-generate prints it


def translated_set(hypotheses: Path) -> str | None:
    """The set that fairseq-generate translated, from generate.log beside ``hypotheses``; None if
    there is no such log or it does not say."""
    log = hypotheses.with_name("generate.log")
    found = _LAST_LINE.findall(log.read_bytes()) if log.is_file() else []
    return found[-1].decode(errors="replace") if found else None


def check_set(hypotheses: Path, expected: str) -> None:
    """Refuses to score translations of another set.

    Raises:
        ValueError: their set is not ``expected``.
    """
    translated = translated_set(hypotheses)
    if translated not in (None, expected):
        raise ValueError(
            f"{hypotheses} has translations of the {translated} set, not of {expected}: score with"
            f" EVALUATE={translated}, or translate {expected} first (EVALUATE={expected}"
            " recipes/generate.sh EXPERIMENT)"
        )


def check_scored(run: Path, scores: dict[str, Any]) -> None:
    """Refuses scores whose set differs from that of the translations beside them.

    Args:
        scores: the contents of the run's score.json.

    Raises:
        ValueError: the sets differ.
    """
    translated = translated_set(run / "hypotheses.txt")
    if None not in (translated, scores.get("set")) and translated != scores["set"]:
        raise ValueError(
            f"{run / 'score.json'} is of the {scores['set']} set, and hypotheses.txt of"
            f" {translated}: score again (EVALUATE={translated} recipes/score.sh EXPERIMENT)"
        )
