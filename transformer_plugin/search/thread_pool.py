"""Searches several batches at once on a CPU, each in its own thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = Lock()
_contexts = 0  # how many threads are within ``one_thread``
_all_threads = 1  # torch's number of threads outside of it


def available_threads() -> int:
    """How many threads a search may use: torch's number, whatever other searches have set."""
    return _all_threads if _contexts else torch.get_num_threads()


@contextmanager
def one_thread() -> Iterator[None]:
    """Context in which torch's operations run in one thread.

    Otherwise torch's threads spin for some milliseconds after each operation, and take processor
    time from the searches. ``torch.set_num_threads`` also sets the number for Python threads that
    start later, so threads that search at once share the number to restore.
    """
    global _contexts, _all_threads
    with _lock:
        _all_threads = available_threads()
        _contexts += 1
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(_all_threads)
        with _lock:
            _contexts -= 1


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> list[Result]:
    """``[function(item) for item in items]``, in ``workers`` threads; call it in ``one_thread``.

    Each torch operation, which releases Python's lock, runs in a single thread here. For small
    operations this wastes less time than threads that wait for each other after each operation.
    """
    workers = min(workers, len(items))
    if workers <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1)) as pool:
        return list(pool.map(function, items))


def batches_by_length(lengths: Tensor, budget: int, workers: int) -> list[Tensor]:
    """Indices of sentences of similar length, with about ``budget`` tokens in each batch.

    Batches come in rounds of one for each worker. Neighbours in the order of length go to different
    batches of a round, so that all workers finish at about the same time.
    """
    order = lengths.argsort(descending=True, stable=True)
    tokens = lengths[order].clamp_min(1).cumsum(0)
    rounds = max(1, round(int(tokens[-1]) / (budget * workers)))
    place = (tokens - 1) * rounds // tokens[-1]  # the round of each sentence
    return [
        batch
        for sentences in order.split(torch.bincount(place, minlength=rounds).tolist())
        for batch in (sentences[i::workers] for i in range(workers))
        if batch.numel()
    ]
