"""Checkpoints of intervals and epochs that fairseq would not write."""

import pytest
import torch
from fairseq_commands import run, training

SMALL = ("--train-subset", "valid", "--max-tokens", 4000, "--max-update", 0)


@pytest.mark.parametrize("validates", [True, False])
def test_the_last_epoch_is_saved_whatever_the_interval(toy, tmp_path, validates):
    flags = (*SMALL, "--max-epoch", 3, "--save-interval", 2)
    command = training(toy / "data-bin", tmp_path, *flags)
    if validates:
        command.remove("--disable-validation")
    run(*command)
    saved = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert saved["extra_state"]["train_iterator"]["epoch"] == 4
    assert (saved["extra_state"]["val_loss"] is not None) == validates
    assert (tmp_path / "checkpoint_best.pt").exists() == validates
