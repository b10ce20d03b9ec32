"""Memory that is asked for again causes no page faults."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_plugin.training import malloc

FAULTS = """
import resource, sys, torch
from transformer_plugin.training.malloc import disable_trimming

assert sys.argv[1] == "as it is" or disable_trimming()
def tensors():
    for _ in range(5):
        together = [torch.ones(5 << 20) for _ in range(4)]
        del together
tensors()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
tensors()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how],
        # glibc otherwise moves its thresholds, and what it keeps depends on what came before.
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")  # pages of 2 MB leave few faults


@pytest.mark.skipif(HUGE.exists() and "[always]" in HUGE.read_text(), reason="huge pages")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_what_was_freed_is_used_again():
    pages = 5 * 4 * (5 << 20) * 4 // 4096  # that those tensors have
    assert faults("as it is") > pages / 10
    assert faults("kept") < pages / 100


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert not malloc.disable_trimming()
