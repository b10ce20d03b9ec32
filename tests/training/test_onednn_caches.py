"""Training keeps oneDNN's compiled kernels of a few shapes, unless the user wants more."""

import subprocess
import sys

import pytest
from fairseq_commands import environment

from transformer_plugin.kernels.cpu import onednn

MANY_SHAPES = """
import torch
from transformer_plugin.kernels.cpu import onednn
from transformer_plugin.training.onednn_caches import limit_caches

limit_caches()
matrix = onednn.pack(torch.zeros(64, 32), 7)
for rows in [7, *range(100, 200), 7]:
    onednn.affine(torch.zeros(rows, 32), matrix, None)
"""


@pytest.mark.skipif(not onednn._is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("capacity, compiled", [(None, 2), ("1000", 1)])
def test_compiled_kernels_of_few_shapes_are_kept_unless_the_user_says_so(capacity, compiled):
    env = {n: v for n, v in environment(forks=False).items() if "CACHE_CAPACITY" not in n}
    env |= {"ONEDNN_VERBOSE": "profile", "OMP_NUM_THREADS": "1"}
    if capacity:
        env |= dict.fromkeys(["LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"], capacity)
    done = subprocess.run(
        [sys.executable, "-c", MANY_SHAPES], env=env, capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stdout.splitlines() if "mb7ic32oc64" in line]
    assert sum("create:cache_miss" in line for line in lines) == compiled
    assert sum(",exec," in line for line in lines) == 2
