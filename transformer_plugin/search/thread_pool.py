"""Processes several batches at once on a CPU, each in its own thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[function(item) for item in items]``, in as many threads as torch uses.

    Each torch operation, which releases Python's lock, runs in a single thread here. For small
    operations this wastes less time than threads that wait for each other after each operation.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    if workers <= 1:
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(threads)  # for later threads; this one is unchanged
