"""Updates whose gradient is not a number: who was in them, and how many may be left out."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)
FILE = "numeric_faults.jsonl"  # below the folder of checkpoints; a batch a line


class NonFiniteGradientError(Exception):
    """The norm of the gradient of an update is infinite or not a number."""


class NumericFaults:
    """Notes each faulty update, and stops training when there are too many.

    Args:
        folder: of the checkpoints.
        limit: faulty updates that are left out in one run of fairseq-train.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.path = folder / FILE
        self.limit = limit
        self.count = 0

    def add(self, update: int, rank: int, batches: Iterable[tuple[list[int], float]]) -> None:
        """Notes the batches of one update, each as the ids of its sentences in the training set
        and its loss in nats.

        Raises:
            SystemExit: this one is beyond the limit.
        """
        self.count += 1
        named = []
        with self.path.open("a", encoding="utf-8") as file:
            for ids, loss in batches:
                finite = math.isfinite(loss)
                named += [] if finite else ids
                # JSON knows no NaN.
                row = {"update": update, "rank": rank, "loss": loss if finite else str(loss)}
                file.write(json.dumps(row | {"sentences": ids}) + "\n")
        shown = ", ".join(map(str, named[:10])) + (", ..." if len(named) > 10 else "")
        what = (
            f"the loss of a batch is not finite (sentences {shown})"
            if named
            else "the gradient is not finite, though the loss of each of its batches is"
        )
        message = f"update {update}: {what}; all of them are in {self.path}"
        if self.count > self.limit:
            raise SystemExit(
                f"{message}. {self.limit} such updates were left out before, which is the limit"
                " (--nonfinite-limit): look at these sentences, lower --lr, or train in fp32. The"
                " checkpoints are from before"
            )
        logger.warning("%s. It is left out (%d of at most %d)", message, self.count, self.limit)


def batch_losses(batches: Iterable[dict[str, Any]], loss: Any) -> list[tuple[list[int], float]]:
    """Sentence ids and loss of each batch; ``loss`` gives that of one."""
    return [(batch["id"].tolist(), float(loss(batch))) for batch in batches if batch]
