"""On SIGTERM, SIGUSR1, SIGHUP or Ctrl-C training saves a checkpoint after its update and exits."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType

import torch

from .collectives import in_any_process

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
_OF_TERMINALS = (signal.SIGINT, signal.SIGHUP)

logger = logging.getLogger(__name__)
_received: signal.Signals | None = None


def listen() -> None:
    """Installs the signal handlers. A second Ctrl-C raises KeyboardInterrupt at once. Signals that
    are already ignored stay so: SIGHUP under nohup; Ctrl-C and SIGHUP under a recipe, which sends a
    SIGTERM instead."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if number in _OF_TERMINALS and signal.getsignal(number) is signal.SIG_IGN:
                continue
            signal.signal(number, _handle)


def _handle(number: int, _frame: FrameType | None) -> None:
    global _received
    if _received is signal.SIGINT and number == signal.SIGINT:
        raise KeyboardInterrupt
    _received = signal.Signals(number)


def requested(device: torch.device) -> str | None:
    """The name of the signal that a process of the job has received, or None.

    A collective operation: every process of the job calls it after the same update.
    """
    name = _received.name if _received else None
    name = "Ctrl-C" if name == "SIGINT" else name
    if in_any_process(name is not None, device):
        return name or "a signal to another process of the job"
    return None
