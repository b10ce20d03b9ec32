"""Batches side by side."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from transformer_plugin.search.thread_pool import map_in_threads


def test_threads_meet_and_compute_in_one_thread_each():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    meeting = threading.Barrier(2, timeout=20)  # breaks where one waits for the other's end

    def work(number):
        meeting.wait()
        return number, torch.get_num_threads()

    try:
        assert map_in_threads(work, [3, 4], 2) == [(3, 1), (4, 1)]
        assert torch.get_num_threads() == 2
        with ThreadPoolExecutor() as later:
            assert later.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(threads)
