"""Scores as they are printed, each with its signature."""

from __future__ import annotations

from typing import Any


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
