"""SIGTERM, SIGUSR1 or Ctrl-C end training after the update at hand, with a checkpoint."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType

import torch
from torch import distributed

EXIT_CODE = 85  # "stopped and saved: run the same command again", for scheduler scripts
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)

logger = logging.getLogger(__name__)
_received: signal.Signals | None = None


def listen() -> None:
    """Takes the signals from now on. A second Ctrl-C stops at once."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, _note)


def _note(number: int, _frame: FrameType | None) -> None:
    global _received
    if _received is signal.SIGINT and number == signal.SIGINT:
        raise KeyboardInterrupt
    _received = signal.Signals(number)


def requested(device: torch.device) -> str | None:
    """The name of a signal that this process or another of the job has got, or None.

    Every process of the job has to ask, after the same update: they agree by a sum.
    """
    name = _received.name if _received else None
    if not (distributed.is_initialized() and distributed.get_world_size() > 1):
        return name
    count = torch.tensor([1 if name else 0], device=device)
    distributed.all_reduce(count)
    return name or ("a signal to another process of the job" if count.item() else None)
