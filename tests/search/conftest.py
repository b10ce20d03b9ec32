"""A fixture for tests of threads."""

import pytest
import torch


@pytest.fixture
def two_threads():
    """torch's number of threads is 2."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)
