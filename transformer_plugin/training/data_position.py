"""The place in an epoch at which a run resumes with another number of processes or batches.

fairseq counts the batches that each process has read. Processes take turns to read the batches of
an epoch.
"""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger(__name__)


class DataPosition:
    """The place in the data, kept in ``train_iterator`` of a checkpoint.

    Args:
        processes: number of processes that read batches.
        grouped: --grouped-shuffling, with which the order of an epoch depends on that number.

    Attributes:
        batches: number of batches in the epoch, of all processes; 0 = not known.
        restored: ``train_iterator`` of the checkpoint from which the run resumes.
    """

    def __init__(self, processes: int, grouped: bool = False) -> None:
        self.processes = processes
        self.grouped = grouped
        self.batches = 0
        self.restored: dict[str, Any] = {}

    def state(self) -> dict[str, int]:
        """What ``begin`` needs to know of an earlier run."""
        return {"processes": self.processes, "batches": self.batches}

    def begin(self, batches: int) -> None:
        """Begins an epoch; the first one of a resumed run, at the checkpoint's place in the data.

        For that it changes ``iterations_in_epoch`` of ``restored`` before fairseq reads it.

        Args:
            batches: number of batches in the epoch.
        """
        self.batches = batches
        before, self.restored = self.restored, {}
        read = before.get("iterations_in_epoch", 0)
        if not read or not before.get("batches") or self.state().items() <= before.items():
            return
        read *= before["processes"]
        each = read * batches // before["batches"] // self.processes
        before["iterations_in_epoch"] = each
        logger.info(
            "the epoch resumes after batch %d of %d, for %d processes: the checkpoint was saved"
            " after batch %d of %d, by %d",
            *(each * self.processes, batches, self.processes),
            *(read, before["batches"], before["processes"]),
        )
        if self.grouped and self.processes != before["processes"]:
            logger.warning(
                "with --grouped-shuffling the order of an epoch depends on the number of processes,"
                " which has changed: some sentences of this epoch are read twice, others not at all"
            )
