"""Worker processes for the blocks of a text: results in order, few blocks in memory."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import TypeVar

from steps.errors import BadInput

BLOCK = 1 << 19  # bytes of one side
Item = TypeVar("Item")
Result = TypeVar("Result")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add --workers: all cores that this process may use."""
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--workers", type=_at_least_one, default=cores, help="processes (default: one per core)"
    )


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def line_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a text in blocks of whole lines."""
    with path.open("rb") as stream:
        while lines := stream.readlines(BLOCK):
            yield b"".join(lines)


def pair_blocks(source: Path, target: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Blocks of pairs of two aligned texts: source lines and the same number of target lines."""
    with source.open("rb") as one, target.open("rb") as other:
        while lines := one.readlines(BLOCK):
            others = list(islice(other, len(lines)))
            if len(lines) != len(others):
                raise BadInput(f"{source} and {target} changed while they were read: start again")
            yield lines, others


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """function(item) of each item in order, in `workers` processes; 1 is this process.

    At most four items per worker are in memory. Raises what `function` raises, and BadInput if a
    process is killed. If this process is killed, its workers exit.
    """
    if workers == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _start, (os.getpid(),))
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= 4 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        if sys.version_info < (3, 11, 5):  # shutdown would block on it (CPython 94777)
            pool._call_queue._reader.close()
        raise BadInput(
            "a worker process was killed, probably for lack of memory: give fewer --workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(parent: int) -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
