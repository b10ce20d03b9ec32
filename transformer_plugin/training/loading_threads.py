"""Stops fairseq's background threads, which load batches, before Python exits."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress

from fairseq.data.iterators import BackgroundConsumer

_SECONDS = 10  # limit for the batches that are being loaded


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
