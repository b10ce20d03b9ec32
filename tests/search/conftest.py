"""A fixture for tests of threads."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parent))  # markov_chain


@pytest.fixture
def two_threads():
    """torch's number of threads is 2."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)
