"""Memory of a training on a CPU: what is freed is used again, and what stays is kept apart."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_commands import REPO

from transformer_plugin.training import malloc

glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc"
)

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


PLACES = """
import sys
from pathlib import Path
import torch
from trainers import build_trainer

def in_heap(tensor):
    (line,) = (line for line in open("/proc/self/maps") if line.endswith("[heap]\\n"))
    first, last = (int(each, 16) for each in line.split()[0].split("-"))
    return first <= tensor.data_ptr() < last

shape = ("--d-model", "256", "--d-ff", "1024")
trainer, (batch, *_) = build_trainer(Path(sys.argv[1]), *shape, *sys.argv[2:])
trainer.train_step([batch])
state = list(trainer.optimizer.optimizer.state.items())
kept = [t for weight, each in state for t in (weight, each["exp_avg"], each["exp_avg_sq"])]
large = [tensor for tensor in kept if tensor.nbytes >= 128 << 10]
print(len(large), sum(map(in_heap, large)), in_heap(torch.empty(5 << 20)))
"""


@glibc
def test_weights_and_moments_are_outside_of_the_heap_which_activations_use_again(tmp_path):
    # As after large blocks were freed: glibc would then put all of these into the heap.
    env = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "PYTHONPATH": f"{REPO}:{REPO / 'tests'}"}
    done = subprocess.run(
        [sys.executable, "-c", PLACES, tmp_path, "--bf16"],
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=True,
    )
    large, in_heap, activation = done.stdout.split()[-3:]
    assert int(large) > 50 and activation == "True"
    assert int(in_heap) < int(large) / 2  # some fill gaps that the model's first weights left


HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")  # pages of 2 MB leave few faults


@pytest.mark.skipif(HUGE.exists() and "[always]" in HUGE.read_text(), reason="huge pages")
@glibc
@pytest.mark.slow
def test_what_was_freed_is_used_again():
    pages = 5 * 4 * (5 << 20) * 4 // 4096  # that those tensors have
    assert faults("as it is") > pages / 10
    assert faults("kept") < pages / 100


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert not malloc.disable_trimming() and not malloc.map_tensors()
