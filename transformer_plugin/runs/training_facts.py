"""The training entry of a manifest: updates, tokens per batch, FLOPs, validation scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..paper_tables import BATCH_TOKENS
from ..reports.training_report.attempts import Attempt
from ..reports.training_report.entries import read_entries
from ..reports.training_report.series import Series, TrainingLog

_VALIDATION = ("loss", "nll_loss", "ppl", "accuracy", "bleu", "chrf", "best_loss")


def training_facts(path: Path) -> dict[str, Any]:
    """Updates and epochs, tokens per update compared with the paper's, FLOPs, deviations from the
    paper, and the last and the best validation.

    FLOPs include updates that an interruption lost, up to the last line of progress before it.
    """
    log = TrainingLog()
    for entry in read_entries(path):
        log.take(entry)
    attempts = log.attempts.found
    epochs = [saved.epoch for saved in log.saved]
    epochs += [int(epoch) for table in (log.train, log.epochs) for epoch in table["epoch"].values]
    found: dict[str, Any] = {
        "devices": log.attempts.devices,
        "deviations": log.attempts.deviations,
        "updates": attempts[-1].last if attempts else log.updates,
        "epochs": max(epochs, default=0),
        "starts": len(attempts),
    }
    if attempts:
        found |= {
            "updates_an_epoch": attempts[-1].updates_per_epoch,
            "tokens_per_update": _beside_the_papers(attempts[-1]),
            "flops": log.attempts.flops,
            "flops_per_update": attempts[-1].flops,
        }
    validations = _validations(log)
    if validations:
        found["valid"] = validations[-1]
        found["best_valid"] = min(validations, key=_finite_loss)
    return found


def _finite_loss(figures: dict[str, float]) -> float:
    """The loss; infinity where it is missing, NaN or infinite."""
    loss = figures.get("loss", math.inf)
    return loss if math.isfinite(loss) else math.inf


def _beside_the_papers(attempt: Attempt) -> dict[str, Any]:
    found: dict[str, Any] = {"intended": BATCH_TOKENS}
    for side, tokens in (("source", attempt.source_tokens), ("target", attempt.target_tokens)):
        found[side] = tokens
        found[f"{side}_off_percent"] = round(100 * (tokens / BATCH_TOKENS - 1), 1)
    return found


def _validations(log: TrainingLog) -> list[dict[str, float]]:
    """The figures of each validation on the first validation set, in order."""
    table: dict[str, Series] = next(iter(log.valid.values()), {})
    found: dict[int, dict[str, float]] = {}
    for name in _VALIDATION:
        series = table.get(name, Series())
        for update, value in zip(series.updates, series.values, strict=True):
            found.setdefault(update, {})[name] = value
    return [figures | {"num_updates": float(update)} for update, figures in sorted(found.items())]
