"""A run's ``score.json``: read, and printed with signatures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_scores(run: Path) -> dict[str, Any]:
    """The contents of ``score.json`` in a run's folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it has another form.
    """
    path = run / "score.json"
    if not run.is_dir():
        raise FileNotFoundError(f"{run}: no such folder; expected that of a run")
    if not path.is_file():
        raise FileNotFoundError(f"no score yet: {path} is missing (recipes/score.sh writes it)")
    try:
        scores = dict(json.loads(path.read_text(encoding="utf-8")))
        score_lines(scores), ignores_case(scores)  # raise an error if they are wrong
        if "reference" in scores:
            reference_digest(scores), Path(scores["reference"]["file"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not what transformer-plugin score writes ({error})") from None
    return scores


def ignores_case(scores: dict[str, Any]) -> bool:
    """Whether translations and references were compared in lower case."""
    return "case:lc" in scores["signature"]


def reference_digest(scores: dict[str, Any]) -> str:
    """The sha256 of the reference file."""
    return str(scores["reference"]["sha256"])


def score_lines(scores: dict[str, Any]) -> list[str]:
    """A line for each score of a ``score.json``."""
    lines = []
    for key, name in (("bleu", "BLEU"), ("chrf", "chrF"), ("f1", "F1")):
        if key in scores:
            signature = scores.get(f"{key}_signature", scores["signature"])
            lines.append(f"{name} {scores[key]:.2f}  {signature}")
    if found := scores.get("comet"):
        lines.append(f"COMET {found['score']:.4f}  {found['model']}|version:{found['version']}")
    for name, found in scores.get("variants", {}).items():
        lines.append(f"{name} {found['score']:.2f}  {found['signature']}")
    return lines
