"""A process that has trained ends well, though fairseq was still loading batches."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress

from fairseq.data.iterators import BackgroundConsumer

_SECONDS = 10  # that a batch may take


def stop() -> None:
    """Ends the threads that load batches ahead, each when it has the one that it is at.

    A thread that is within torch when Python ends takes the whole process down (``terminate called
    without an active exception``), after the last checkpoint, but with an exit status that says
    that training failed.
    """
    limit = time.monotonic() + _SECONDS
    for thread in threading.enumerate():
        if isinstance(thread, BackgroundConsumer):
            thread._max_len = 0  # no more than it has
            while thread.is_alive() and time.monotonic() < limit:
                with suppress(queue.Empty):
                    thread._queue.get_nowait()  # it may wait for room
                thread.join(0.01)
