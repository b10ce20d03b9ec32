"""Checkpoints are written and copied whole, or not at all."""

import os
import resource

import pytest
import torch

from transformer_plugin.checkpoints.saving import copy, save


@pytest.fixture
def no_room():
    """Any file of more than 1 MiB fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def large(tmp_path_factory):
    """A checkpoint of 2 MiB."""
    path = tmp_path_factory.mktemp("large") / "large.pt"
    save({"w": torch.zeros(1 << 19)}, path)
    return path


def test_a_full_disk_leaves_the_former_checkpoint(tmp_path, large, no_room):
    path = tmp_path / "checkpoint_last.pt"
    save({"w": torch.ones(1)}, path)
    with pytest.raises(OSError):
        save(torch.load(large), path)
    with pytest.raises(OSError):
        copy(large, path)
    assert torch.load(path)["w"].item() == 1 and os.listdir(tmp_path) == [path.name]


def test_a_copy_replaces_the_former_checkpoint(tmp_path, large):
    path = tmp_path / "checkpoint_last.pt"
    save({"w": torch.ones(1)}, path)
    copy(large, path)
    assert path.read_bytes() == large.read_bytes() and os.listdir(tmp_path) == [path.name]
