"""fairseq's background threads, which load batches: where they may hang, and how they end."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from typing import Any

from fairseq.data.iterators import BackgroundConsumer

_SECONDS = 10  # limit for the batches that are being loaded


def avoid_forks(data: Any, processes: int) -> None:
    """Turns the thread off where it would start the processes that load batches.

    A process forked from a thread inherits the locks that other threads hold, and may wait for one
    for ever; all machines then wait for it (fairseq issue 4816). Without the thread, each of the
    loading processes still keeps two batches ready.

    Args:
        data: the options of fairseq's data loading.
        processes: how many train together.
    """
    if processes > 1 and data.num_workers > 0:
        data.data_buffer_size = 0


def stop() -> None:
    """Ends each loading thread after its current batch.

    If a thread is inside torch when Python exits, the process aborts (``terminate called without an
    active exception``). The last checkpoint is whole, but the exit status reports a failure.
    """
    limit = time.monotonic() + _SECONDS
    for thread in threading.enumerate():
        if isinstance(thread, BackgroundConsumer):
            thread._max_len = 0  # no further batches
            while thread.is_alive() and time.monotonic() < limit:
                with suppress(queue.Empty):
                    thread._queue.get_nowait()  # it may wait for a free place in the queue
                thread.join(0.01)
