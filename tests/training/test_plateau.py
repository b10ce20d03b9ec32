"""``--lr-scheduler reduce_lr_on_plateau``: a continued run has the learning rate of a whole one."""

from types import SimpleNamespace

import pytest
from fairseq import checkpoint_utils
from trainers import build_trainer

from transformer_plugin.training import protection
from transformer_plugin.training.interval_checkpoints import saving_each_interval

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


def started(trainer, folder, *flags, name="checkpoint_last.pt"):
    """The trainer of a new process that goes on from a checkpoint."""
    path = f"{trainer.cfg.checkpoint.save_dir}/{name}"
    again, _ = build_trainer(folder / "again", *FLAGS, "--restore-file", path, *flags)
    checkpoint_utils.load_checkpoint(again.cfg.checkpoint, again)
    return again


def continued(trainer, folder, *flags, **options):
    """The learning rate in epoch 4 of a new process."""
    return started(trainer, folder, *flags, **options).get_lr()


def test_after_the_end_of_an_epoch(trainer, tmp_path):
    checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, ENDED, 5.0)
    assert trainer.lr_step(3, 5.0) == LR * SHRINK
    assert continued(trainer, tmp_path) == LR * SHRINK


def test_from_the_checkpoint_of_an_interval_that_ends_with_an_epoch(trainer, tmp_path):
    trainer.cfg.checkpoint.save_interval_updates = 1
    save = saving_each_interval(checkpoint_utils.save_checkpoint)
    save(trainer.cfg.checkpoint, trainer, ENDED, 5.0)
    assert continued(trainer, tmp_path, name="checkpoint_3_0.pt") == LR * SHRINK


def test_after_a_signal_at_the_end_of_an_epoch(trainer, tmp_path, monkeypatch):
    monkeypatch.setattr(protection, "requested", lambda device: "SIGTERM")
    save = protection._stopping_on_signals(lambda *_: ([5.0], False))
    with pytest.raises(SystemExit):
        save(trainer.cfg, trainer, trainer.task, ENDED, ["valid"], True)
    assert trainer.get_lr() == LR * SHRINK
    assert continued(trainer, tmp_path) == LR * SHRINK


def test_within_an_epoch_there_is_no_step(trainer, tmp_path):
    place = {"version": 2, "epoch": 3, "iterations_in_epoch": 2}
    within = SimpleNamespace(epoch=3, end_of_epoch=lambda: False, state_dict=lambda: place)
    checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, within, 5.0)
    again = started(trainer, tmp_path)
    assert again.get_lr() == LR
    assert again.lr_step(3, 5.0) == LR * SHRINK


def test_a_new_schedule_does_not_know_the_old_losses(trainer, tmp_path):
    checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, ENDED, 5.0)
    again = started(trainer, tmp_path, "--reset-lr-scheduler")
    assert [again.lr_step(epoch, 6.0) for epoch in (4, 5, 6)] == [LR, LR, LR * SHRINK]


def test_a_new_optimizer_has_a_new_schedule(trainer, tmp_path):
    checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, ENDED, 5.0)
    again = started(trainer, tmp_path, "--reset-optimizer")
    assert [again.lr_step(epoch, 6.0) for epoch in (4, 5, 6)] == [LR, LR, LR * SHRINK]


def test_new_meters_do_not_change_the_rate(trainer, tmp_path):
    checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, ENDED, 5.0)
    assert continued(trainer, tmp_path, "--reset-meters") == LR * SHRINK
