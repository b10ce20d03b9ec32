"""``--lr-scheduler reduce_lr_on_plateau``: a continued run has the learning rate of a whole one."""

from types import SimpleNamespace

import pytest
from fairseq import checkpoint_utils
from trainers import build_trainer

from transformer_plugin.training import protection

LR, PATIENCE, SHRINK = 0.01, 1, 0.5
FLAGS = (
    *("--optimizer", "adam", "--lr-scheduler", "reduce_lr_on_plateau", "--lr", LR),
    *("--lr-patience", PATIENCE, "--lr-shrink", SHRINK, "--warmup-updates", 0),
)
ENDED = SimpleNamespace(  # fairseq's iterator at the end of epoch 3
    epoch=3,
    end_of_epoch=lambda: True,
    state_dict=lambda: {"version": 2, "epoch": 4, "iterations_in_epoch": 0},
)


@pytest.fixture
def trainer(tmp_path):
    """The trainer after epoch 2: epoch 3 is the second without a lower loss."""
    trainer, _ = build_trainer(tmp_path / "whole", *FLAGS)
    trainer.cfg.checkpoint.no_save = False
    for epoch in (1, 2):
        trainer.lr_step(epoch, 5.0)
    assert trainer.get_lr() == LR
    return trainer


def continued(trainer, folder):
    """The learning rate in epoch 4 of a new process."""
    again, _ = build_trainer(folder / "again", *FLAGS)
    again.load_checkpoint(f"{trainer.cfg.checkpoint.save_dir}/checkpoint_last.pt")
    again.lr_step(4)
    return again.get_lr()


def test_after_the_end_of_an_epoch(trainer, tmp_path):
    checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, ENDED, 5.0)
    assert trainer.lr_step(3, 5.0) == LR * SHRINK
    assert continued(trainer, tmp_path) == LR * SHRINK


def test_after_a_signal_at_the_end_of_an_epoch(trainer, tmp_path, monkeypatch):
    monkeypatch.setattr(protection, "requested", lambda device: "SIGTERM")
    save = protection._stopping_on_signals(lambda *_: ([5.0], False))
    with pytest.raises(SystemExit):
        save(trainer.cfg, trainer, trainer.task, ENDED, ["valid"], True)
    assert trainer.get_lr() == LR * SHRINK
    assert continued(trainer, tmp_path) == LR * SHRINK
