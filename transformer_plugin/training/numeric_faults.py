"""Records and limits the updates that are skipped because their gradient is NaN or infinite."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from .collectives import in_any_process

logger = logging.getLogger(__name__)
FILE = "numeric_faults.jsonl"  # in --save-dir; one line for each batch


class NonFiniteGradientError(Exception):
    """The gradient norm of an update is NaN or infinite."""


class NumericFaults:
    """Records skipped updates, and stops training when there are too many.

    Args:
        folder: ``--save-dir``.
        limit: updates that may be skipped in one run of fairseq-train.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.path = folder / FILE
        self.limit = limit
        self.count = 0

    def add(
        self,
        update: int,
        rank: int,
        batches: Iterable[tuple[list[int], float]],
        device: torch.device | None = None,
    ) -> None:
        """Records a skipped update. Every process of the job calls it.

        Args:
            batches: sentence ids in the training set and loss in nats of each batch of the update
                in this process.
            device: where processes exchange values.

        Raises:
            SystemExit: the limit is exceeded.
        """
        self.count += 1
        named = []
        with self.path.open("a", encoding="utf-8") as file:
            for ids, loss in batches:
                finite = math.isfinite(loss)
                named += [] if finite else ids
                # JSON has no NaN.
                row = {"update": update, "rank": rank, "loss": loss if finite else str(loss)}
                file.write(json.dumps(row | {"sentences": ids}) + "\n")
        shown = ", ".join(map(str, named[:10])) + (", ..." if len(named) > 10 else "")
        explained = in_any_process(bool(named), device)
        if named:
            what = f"the loss of a batch is not finite (sentences {shown})"
        elif explained:
            what = "the loss of a batch of another process is not finite"
        else:
            what = "the gradient is not finite, though the loss of each of its batches is"
        message = f"update {update}: {what}; {self.path} lists its sentences"
        if self.count > self.limit:
            raise SystemExit(
                f"{message}. {self.limit} updates were skipped before it, the most that"
                " --nonfinite-limit allows: look at these sentences, lower --lr, or train in fp32."
                " The checkpoints are of earlier updates"
            )
        if named or not explained:
            logger.warning("%s. Skipped (%d of at most %d)", message, self.count, self.limit)


def batch_losses(batches: Iterable[dict[str, Any]], loss: Any) -> list[tuple[list[int], float]]:
    """Sentence ids and loss of each batch; ``loss`` computes the loss of a batch."""
    return [(batch["id"].tolist(), float(loss(batch))) for batch in batches if batch]
