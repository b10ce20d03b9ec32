"""Batches side by side."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from transformer_plugin.search.thread_pool import (
    available_threads,
    batches_by_length,
    map_in_threads,
    one_thread,
)

pytestmark = pytest.mark.usefixtures("two_threads")


def in_new_thread(function):
    with ThreadPoolExecutor(1) as later:
        return later.submit(function).result()


def test_threads_meet_and_compute_in_one_thread_each():
    meeting = threading.Barrier(2, timeout=20)  # breaks where one waits for the other's end

    def work(number):
        meeting.wait()
        return number, torch.get_num_threads()

    with one_thread():
        assert map_in_threads(work, [3, 4], 2) == [(3, 1), (4, 1)]
    assert torch.get_num_threads() == 2
    assert in_new_thread(torch.get_num_threads) == 2


def test_the_number_of_threads_comes_back_after_an_error():
    with pytest.raises(KeyError), one_thread():
        assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 1
        raise KeyError
    assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 2


@pytest.mark.parametrize(
    "lengths, budget, expected",
    [
        ([3, 9, 0, 5, 7, 1], 100, [[1, 3, 5], [4, 0, 2]]),
        ([3, 9, 0, 5, 7, 1], 6, [[1], [4, 0, 2], [3, 5]]),
        ([0, 0], 6, [[0], [1]]),
        ([70], 6, [[0]]),
    ],
    ids=["one-round", "rounds", "empty", "alone"],
)
def test_neighbours_in_length_go_to_different_workers(lengths, budget, expected):
    batches = batches_by_length(torch.tensor(lengths), budget, workers=2)
    assert [batch.tolist() for batch in batches] == expected


def test_a_number_of_threads_that_a_program_sets_later_counts():
    with one_thread():
        assert available_threads() == 2
    torch.set_num_threads(3)
    assert available_threads() == 3
