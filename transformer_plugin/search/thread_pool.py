"""Several batches at once on a CPU, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[function(item) for item in items]``, in as many threads as torch uses.

    torch's operations, which release Python's lock, run in one thread each here. Where they are
    small, that wastes less than two or more threads that wait for each other at the end of each.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    if workers <= 1:
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(threads)  # of threads yet to come; this one never changed
