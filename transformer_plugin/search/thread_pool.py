"""Searches several batches at once on a CPU, each in its own thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def num_threads(number: int) -> Iterator[None]:
    """Context in which torch's operations in this thread, and in threads that start, run in so many
    threads.

    Between searches it should be 1. Otherwise the threads of torch's last operation keep waiting
    for another for some milliseconds, and take processor time from the searches.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> list[Result]:
    """``[function(item) for item in items]``, in so many threads.

    Each torch operation, which releases Python's lock, runs in a single thread here. For small
    operations this wastes less time than threads that wait for each other after each operation.
    """
    workers = min(workers, len(items))
    if workers <= 1:
        return [function(item) for item in items]
    with (
        num_threads(torch.get_num_threads()),  # restored for later threads
        ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1)) as pool,
    ):
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
