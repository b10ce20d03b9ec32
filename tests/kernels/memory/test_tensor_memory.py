"""Tensors in a range of addresses that the process keeps: each in a process of its own."""

import os
import shutil
import subprocess
import sys

import pytest

from transformer_plugin.kernels.memory.tensor_memory import take_over_tensors_at_once

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")

START = """
import torch
from transformer_plugin.kernels.memory.tensor_memory import take_over_tensors_at_once
assert take_over_tensors_at_once()
"""
AGAIN = """
assert take_over_tensors_at_once()  # for a second trainer in one process
"""
# Ten thousand blocks of any size that come and go; nobody writes into another's.
COME_AND_GO = """
import random

def work(seed):
    chance, living = random.Random(seed), []
    for number in range(2500):
        if len(living) > 40 or (living and chance.random() < 0.4):
            tensor, value = living.pop(chance.randrange(len(living)))
            assert bool((tensor == value).all()), "written by another"
        size = chance.choice([0, 1, 1000, 16384, 20_000, 100_000, chance.randrange(300_000)])
        value = float(seed * 10_000 + number)
        living.append((torch.full((size,), value), value))
        assert living[-1][0].data_ptr() % 64 == 0
    return all(bool((tensor == value).all()) for tensor, value in living)
"""
THREADS = """
from concurrent.futures import ThreadPoolExecutor
torch.set_num_threads(1)
with ThreadPoolExecutor(4) as threads:
    assert all(threads.map(work, range(1, 5)))
"""
BEFORE = """
import torch
before = torch.ones(100_000)
"""
RESIZED = """
after = before + 1
del before
assert bool((after.resize_(200_000)[:100_000] == 2).all())
"""
TOO_LARGE = """
for elements in (1 << 45, 1 << 60):
    try:
        torch.empty(elements)
    except RuntimeError as error:
        assert f"not enough memory: you tried to allocate {4 * elements} bytes" in str(error)
    else:
        raise AssertionError(elements)
"""
LIMIT = """
import os, resource
half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 2
resource.setrlimit(resource.RLIMIT_AS, (half, half))
"""
PROFILED = """
with torch.profiler.profile(profile_memory=True) as seen:
    torch.ones(100_000)
assert max(event.self_cpu_memory_usage for event in seen.events()) == 400_000
"""
USED_AGAIN = """
import resource

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step():
    together = [torch.ones(size << 18) for size in (40, 7, 19, 3, 60)]  # MiB
    kept = [tensor.sum() for tensor in together]
    del together[1::2]
    again = [torch.ones(size << 18) for size in (3, 7)]
step()
before, first = peak(), faults()
for _ in range(20):
    step()
assert peak() - before < 1, (before, peak())
assert faults() - first < 100, faults() - first  # 129 MiB have 33,000 pages
"""
FORK = """
import os, threading
stop = threading.Event()
def churn():
    while not stop.is_set():
        torch.empty(50_000)
thread = threading.Thread(target=churn)
thread.start()
for _ in range(100):
    child = os.fork()
    if child == 0:
        torch.empty(60_000)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
"""


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_blocks_that_come_and_go_in_threads_keep_what_is_in_them():
    run(BEFORE + START + COME_AND_GO + THREADS + RESIZED + TOO_LARGE + PROFILED)


@needs_compiler
def test_memory_is_used_again():
    run(START + USED_AGAIN)


@needs_compiler
def test_a_process_may_be_copied_meanwhile():
    run(START + AGAIN + FORK)


@needs_compiler
def test_where_addresses_are_few_tensors_stay_where_they_are():
    run(LIMIT + START.replace("assert", "assert not") + "torch.ones(100_000)\n")


def test_without_a_compiler_tensors_stay_where_they_are(monkeypatch):
    monkeypatch.setenv("TRANSFORMER_PLUGIN_COMPILED", "0")
    assert not take_over_tensors_at_once()
