"""The reason why a checkpoint is not loaded."""

import pytest
from trainers import build_trainer

from transformer_plugin.checkpoint_error import CheckpointError


def test_another_optimizer_is_not_another_precision(tmp_path):
    old, (batch, *_) = build_trainer(tmp_path / "old")
    old.train_step([batch])
    old.consolidate_optimizer()
    path = str(tmp_path / "x.pt")
    old.save_checkpoint(path, {"train_iterator": {"epoch": 1}})
    new, _ = build_trainer(tmp_path / "new", "--optimizer", "nag", data=tmp_path / "old/data")
    with pytest.raises((CheckpointError, SystemExit), match="Optimizer does not match; please"):
        new.load_checkpoint(path)
