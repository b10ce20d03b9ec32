"""Checkpoints are data: theirs load, and nothing in one is executed."""

import argparse
import os

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils

from transformer_plugin.checkpoints.safe_loading import CheckpointError, allow_fairseq_types, load


class Attack:
    """Pickled as a call of os.system."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.fixture
def harmless():
    return {
        "args": argparse.Namespace(arch="transformer", lr=[0.5], nested=argparse.Namespace(a=1)),
        "model": {"weight": torch.ones(2)},
        "extra_state": {"val_loss": np.float64(1.5), "best": np.float32(2), "array": np.int64(3)},
        "optimizer_history": [{"num_updates": 7, "lr_scheduler_state": {}}],
    }


@pytest.mark.parametrize("zipped", [True, False])
def test_what_fairseq_saves_is_read(tmp_path, harmless, zipped):
    path = tmp_path / "checkpoint.pt"
    torch.save(harmless, path, _use_new_zipfile_serialization=zipped)
    state = load(path)
    assert state["args"] == harmless["args"]
    assert state["extra_state"] == harmless["extra_state"]
    assert torch.equal(state["model"]["weight"], torch.ones(2))


def test_fairseq_itself_reads_it(tmp_path, harmless):
    allow_fairseq_types()
    allow_fairseq_types()
    path = tmp_path / "checkpoint.pt"
    harmless["extra_state"]["train_iterator"] = {"epoch": 1}
    harmless["args"] = None
    torch.save(harmless, path)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert state["optimizer_history"][0]["num_updates"] == 7


@pytest.mark.parametrize("place", ["extra_state", "top"])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("forced", [False, True])
def test_code_is_refused_and_not_run(tmp_path, harmless, monkeypatch, place, zipped, forced):
    marker = tmp_path / "executed"
    path = tmp_path / "attack.pt"
    if place == "top":
        harmless["attack"] = Attack(marker)
    else:
        harmless["extra_state"]["attack"] = [{"deep": Attack(marker)}]
    torch.save(harmless, path, _use_new_zipfile_serialization=zipped)
    if forced:
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    for read in (load, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(CheckpointError, match=r"attack\.pt: refused.* \w+\.system"):
            read(str(path))
    assert not marker.exists()
    torch.load(path, weights_only=False)
    assert marker.exists(), "the attack would have worked"


def test_truncated_and_missing_files_are_named(tmp_path, harmless):
    path = tmp_path / "cut.pt"
    torch.save(harmless, path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(CheckpointError, match=r"cut\.pt: not a whole checkpoint"):
        load(path)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"cut\.pt"):
        load(path)
    with pytest.raises(FileNotFoundError, match=r"absent\.pt: no such checkpoint"):
        load(tmp_path / "absent.pt")
