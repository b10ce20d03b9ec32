"""What a run takes from a checkpoint beside the weights depends on whether it saved it itself."""

import logging
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig
from fairseq.trainer import Trainer
from omegaconf import OmegaConf
from trainers import build_trainer

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.training import early_stopping
from transformer_plugin.training.same_run import continues_itself, resumes

PATIENCE = 60
FLAGS = ("--divergence-updates", PATIENCE)
OLD = [3 + 2 * 0.98**n for n in range(300)]
NEW = [4.2 - n / 2000 for n in range(300)]  # above 1.25 x 3, and falls

EPOCH_1 = SimpleNamespace(  # fairseq's iterator at its end
    epoch=1,
    end_of_epoch=lambda: True,
    state_dict=lambda: {"version": 2, "epoch": 2, "iterations_in_epoch": 0},
)


@pytest.fixture
def losses(monkeypatch):
    """The losses of the next updates."""
    losses = []

    def train_step(trainer, *_):
        trainer.set_num_updates(trainer.get_num_updates() + 1)
        return {"loss": losses.pop(0)}

    monkeypatch.setattr(Trainer, "train_step", train_step)
    return losses


@pytest.fixture
def old(tmp_path, losses):
    """The trainer of a run with the losses ``OLD``, after its checkpoint."""
    trainer, _ = build_trainer(tmp_path / "old", *FLAGS)
    losses[:] = OLD
    while losses:
        trainer.train_step([])
    trainer.cfg.checkpoint.no_save = False
    checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, EPOCH_1, 3.0)
    return trainer


def last(trainer):
    return f"{trainer.cfg.checkpoint.save_dir}/checkpoint_last.pt"


def started(folder, *flags, data=None):
    """The trainer of a new process, which has loaded the checkpoint that it starts from."""
    trainer, _ = build_trainer(folder, *FLAGS, *flags, data=data)
    checkpoint_utils.load_checkpoint(trainer.cfg.checkpoint, trainer)
    assert trainer.get_num_updates() == len(OLD)
    return trainer


def of_another_run(old, tmp_path, *flags):
    words = ("--save-dir", tmp_path / "new", "--restore-file", last(old), *flags)
    return started(tmp_path / "new", *words, data=old.cfg.task.data)


def continued(old, *flags, data=None):
    save_dir = old.cfg.checkpoint.save_dir
    return started(Path(save_dir), "--save-dir", save_dir, *flags, data=data or old.cfg.task.data)


def train(trainer, losses, new):
    losses[:] = new
    while losses:
        trainer.train_step([])


RESETS = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")


@pytest.mark.parametrize("option", [*RESETS, "no_last_checkpoints"])
def test_a_run_that_resets_something_does_not_go_on_as_it_was(option):
    settings = OmegaConf.structured(CheckpointConfig())
    assert resumes(settings)
    settings[option] = True
    assert not resumes(settings)


@pytest.mark.parametrize("flags", [(), ("--reset-dataloader", "--reset-lr-scheduler")])
def test_a_loss_that_is_higher_in_another_run_is_no_divergence(old, tmp_path, losses, flags):
    train(of_another_run(old, tmp_path, *flags), losses, NEW)


@pytest.mark.parametrize("flag, value", [("--label-smoothing", 0.4), ("--dropout", 0.3)])
def test_nor_one_that_is_higher_because_of_a_flag(old, losses, flag, value):
    train(continued(old, flag, value), losses, NEW)


def test_nor_one_that_is_higher_because_it_is_of_whole_sentences(old, losses):
    train(continued(old, "--sentence-avg"), losses, NEW)


def test_nor_one_that_is_higher_after_a_copied_checkpoint(old, tmp_path, losses):
    (tmp_path / "new").mkdir()
    shutil.copy(last(old), tmp_path / "new")
    words = ("--save-dir", tmp_path / "new")
    train(started(tmp_path / "new", *words, data=old.cfg.task.data), losses, NEW)


def test_nor_one_that_is_higher_on_other_data(old, losses, tmp_path):
    other, _ = build_trainer(tmp_path / "other")
    train(continued(old, data=other.cfg.task.data), losses, NEW)


@pytest.mark.parametrize("flags", [(), ("--on-divergence", "rollback")])
def test_one_that_is_higher_in_the_same_run_is(old, losses, flags):
    with pytest.raises(SystemExit, match="the loss has been rising since update"):
        train(continued(old, *flags), losses, [4.2] * 300)
    assert len(losses) > 300 - PATIENCE - 200


def test_only_fairseq_reads_a_whole_checkpoint_into_memory(old, tmp_path, monkeypatch):
    whole, read = [], torch.load

    def reading(file, *rest, mmap=False, **options):
        if not mmap:
            whole.append(file)
        return read(file, *rest, mmap=mmap, **options)

    monkeypatch.setattr(torch, "load", reading)
    data, base = old.cfg.task.data, last(old)
    tuned, _ = build_trainer(tmp_path / "1", "--bf16", "--finetune-from-model", base, data=data)
    checkpoint_utils.load_checkpoint(tuned.cfg.checkpoint, tuned)
    assert len(whole) == 1
    frozen, _ = build_trainer(tmp_path / "2", data=data)
    frozen.model.encoder.layers.requires_grad_(False)
    wider, _ = build_trainer(tmp_path / "3", "--d-ff", 256, data=data)
    for trainer in (frozen, wider):
        with pytest.raises(CheckpointError):
            trainer.load_checkpoint(base)
    assert len(whole) == 3


def test_other_frozen_parameters_are_named_in_a_line(old, tmp_path):
    trainer, _ = build_trainer(tmp_path / "new")
    every = len(list(trainer.model.parameters()))
    trainer.model.encoder.layers.requires_grad_(False)
    some = sum(p.requires_grad for p in trainer.model.parameters())
    message = f"the run trained {every} parameters, the model now has {some} trainable ones"
    with pytest.raises(CheckpointError, match=f"{last(old)}: {message}"):
        trainer.load_checkpoint(last(old))
    trainer.load_checkpoint(last(old), reset_optimizer=True)


def test_another_precision_is_named_in_a_line(old, tmp_path):
    """fairseq says: give --reset-optimizer, which loses the moments and starts warm-up again."""
    trainer, _ = build_trainer(tmp_path / "new", "--bf16", data=old.cfg.task.data)
    with pytest.raises(CheckpointError, match=f"{last(old)}: the run .* another precision"):
        trainer.load_checkpoint(last(old))


def test_a_checkpoint_that_does_not_exist_is_not_blamed(tmp_path, monkeypatch):
    """A new run only builds its optimizer, and with several processes DDP."""

    def build(_):
        raise ImportError("Please install fairscale")

    trainer, _ = build_trainer(tmp_path)
    monkeypatch.setattr(type(trainer), "optimizer", property(build))
    with pytest.raises(ImportError, match=r"^Please install fairscale"):
        trainer.load_checkpoint(str(tmp_path / "checkpoint_last.pt"))
        trainer.optimizer  # noqa: B018


def test_as_many_other_parameters_are_named_too(tmp_path):
    """torch loads the moments of one matrix for another; --fp16 has a single vector of all."""
    folders = []
    for name, frozen in (("old", "fc1"), ("new", "fc2")):
        trainer, batches = build_trainer(tmp_path / name)
        layer = trainer.model.encoder.layers[0].feed_forward
        dict(zip(("fc1", "fc2"), layer.children(), strict=True))[frozen].requires_grad_(False)
        trainer._build_optimizer()
        folders.append(trainer)
    old, new = folders
    for batch in batches:
        old.train_step([batch])
    old.consolidate_optimizer()
    path = str(tmp_path / "checkpoint.pt")
    old.save_checkpoint(path, {"train_iterator": EPOCH_1.state_dict()})
    with pytest.raises(CheckpointError, match=f"{path}: the run trained other parameters"):
        new.load_checkpoint(path)


@pytest.mark.parametrize("flags, kept", [((), True), (("--reset-meters",), False)])
def test_patience_starts_again_with_the_meters(old, monkeypatch, flags, kept):
    monkeypatch.setattr(early_stopping, "_counts", {"best": 3.0, "num_runs": 2})
    checkpoint_utils.save_checkpoint(old.cfg.checkpoint, old, EPOCH_1, 3.0)
    monkeypatch.setattr(early_stopping, "_counts", {})
    continued(old, *flags)
    assert early_stopping.has_run_out(2) == kept


def test_patience_starts_again_with_the_optimizer(old, monkeypatch):
    monkeypatch.setattr(early_stopping, "_counts", {"best": 3.0, "num_runs": 2})
    checkpoint_utils.save_checkpoint(old.cfg.checkpoint, old, EPOCH_1, 3.0)
    for reset in (False, True):
        monkeypatch.setattr(early_stopping, "_counts", {})
        old.load_checkpoint(last(old), reset_optimizer=reset)
        assert early_stopping.has_run_out(2) != reset


def test_a_run_that_reads_its_data_from_the_start_does_not_continue(old):
    settings = old.cfg.checkpoint
    assert continues_itself(last(old), settings)
    settings.reset_dataloader = True
    assert not continues_itself(last(old), settings)


def test_the_counts_go_on_in_the_same_folder_alone(tmp_path, monkeypatch, caplog):
    """However it is spelled, or moved with the working directory that it is relative to; and the
    log says why they start again in another."""
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)
    trainer, _ = build_trainer(tmp_path / "old", "--save-dir", "run")
    settings = trainer.cfg.checkpoint
    settings.no_save = False
    checkpoint_utils.save_checkpoint(settings, trainer, EPOCH_1, 3.0)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for folder in (tmp_path / "run", "../run"):
        settings.save_dir = str(folder)
        assert continues_itself(f"{folder}/checkpoint_last.pt", settings)
    copy = shutil.copytree(tmp_path / "run", tmp_path / "project/run")
    monkeypatch.chdir(tmp_path / "project")
    settings.save_dir = str(copy)
    assert continues_itself(last(trainer), settings)
    assert "start again" not in caplog.text
    settings.save_dir = str(shutil.move(tmp_path / "run", tmp_path / "moved"))
    assert not continues_itself(last(trainer), settings)
    assert f"start again: {last(trainer)} was saved in {tmp_path / 'run'}, and" in caplog.text
