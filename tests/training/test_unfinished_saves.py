"""A checkpoint_last.pt that is not the newest, as its copy failed or somebody went back to it."""

import errno
import os
import shutil
import time

import pytest
import torch
from fairseq.dataclass.configs import CheckpointConfig
from fairseq_commands import last_line, run, train, training
from omegaconf import OmegaConf
from trainers import build_trainer, write_synthetic

from transformer_plugin.training import last_good
from transformer_plugin.training.last_good import newest_good, resumed_from

FLAGS = ("--max-update", 8, "--save-interval-updates", 2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_synthetic(tmp_path_factory.mktemp("data"), words=100, sentences=600)


@pytest.fixture(scope="module")
def state(data, tmp_path_factory):
    """The contents of a checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    train(data, folder, "--max-update", 1)
    return torch.load(folder / "checkpoint_last.pt", weights_only=False)


@pytest.fixture
def write(tmp_path, state):
    """write(name, updates) writes a checkpoint; each is newer than the one before."""
    before = state["extra_state"]

    def write_checkpoint(name, updates, save_dir=tmp_path, optimizer=True, epoch=None, **scores):
        place = {"epoch": epoch or updates // 10, "iterations_in_epoch": updates % 10}
        own = {"save_dir": str(save_dir), "train_iterator": place}
        state["extra_state"] = before | own | scores
        state["optimizer_history"][-1]["num_updates"] = updates
        path, without = tmp_path / name, {} if optimizer else {"last_optimizer_state": None}
        torch.save(state | without, path)
        time.sleep(0.02)  # more than a tick of the file system's clock
        return path

    return write_checkpoint


@pytest.mark.parametrize("name", ["checkpoint3.pt", "checkpoint_3_30.pt"])
@pytest.mark.parametrize("missing", [True, False])
def test_the_newer_one_is_taken(tmp_path, write, caplog, name, missing):
    last = tmp_path / "checkpoint_last.pt"
    for file, updates in (("checkpoint2.pt", 20), ("checkpoint_2_20.pt", 20), (last.name, 20)):
        write(file, updates)
    assert newest_good(last) == last and not caplog.text
    newer = write(name, 30)
    if missing:
        last.unlink()
    assert newest_good(last) == newer
    assert f"training resumes from {newer}, of update 30: checkpoint_last.pt is " in caplog.text
    assert newest_good(last, resumes=False) == last


def test_the_newest_whole_one_is_taken(tmp_path, write):
    whole, cut = write("checkpoint9.pt", 90), write("checkpoint10.pt", 100)
    cut.write_bytes(cut.read_bytes()[:-1000])
    assert newest_good(tmp_path / "checkpoint_last.pt") == whole


def test_others_are_not_taken(tmp_path, write):
    """Those of other runs, averages, other names, of fewer updates, and those older than a file
    that was copied back, perhaps with its old time."""
    write("checkpoint8.pt", 80)
    last = write("checkpoint_last.pt", 20)
    write("checkpoint_best.pt", 50)
    write("checkpoint3.bak.pt", 50)
    write("checkpoint5.pt", 50, save_dir=tmp_path / "other")
    write("checkpoint6.pt", 60, optimizer=False)
    write("checkpoint1.pt", 10)
    write("checkpoint2.pt", 20)
    assert newest_good(last) == last
    os.utime(last, (0, 0))
    assert newest_good(last) == last
    last.unlink()
    for name in ("checkpoint1.pt", "checkpoint2.pt", "checkpoint8.pt"):
        (tmp_path / name).unlink()
    assert newest_good(last) == last


def parameters(path):
    model = torch.load(path, weights_only=False)["model"]
    return {name: tensor.tolist() for name, tensor in model.items()}


def test_training_resumes_from_it(data, tmp_path):
    folder = tmp_path / "run"
    train(data, folder, *FLAGS)
    shutil.copy(folder / "checkpoint_1_6.pt", folder / "checkpoint_last.pt")
    time.sleep(0.02)
    (folder / "checkpoint_1_8.pt").touch()  # saved later, and its copy was killed
    done = train(data, folder, *FLAGS, "--no-save", "--max-update", 9)
    assert f"Loaded checkpoint {folder}/checkpoint_1_8.pt (epoch 1 @ 8 updates)" in done.stdout
    done = train(data, folder, *FLAGS, "--no-save", "--reset-meters")
    assert f"Loaded checkpoint {folder}/checkpoint_last.pt (epoch 1 @ 6 updates)" in done.stdout
    done = train(data, folder, *FLAGS)  # nothing is left to train, and to save
    assert "nothing to train: --max-update 8 is reached" in done.stdout
    assert parameters(folder / "checkpoint_last.pt") == parameters(folder / "checkpoint_1_8.pt")
    (folder / "checkpoint_last.pt").unlink()
    base = shutil.copy(folder / "checkpoint_1_2.pt", tmp_path / "base.pt")
    done = train(data, folder, *FLAGS, "--finetune-from-model", base, status=1)
    assert "missing, but the run has saved checkpoint_1_8.pt: copy it" in last_line(done)


def test_training_resumes_from_it_however_the_folder_is_spelled(data, tmp_path, write, monkeypatch):
    trainer, _ = build_trainer(tmp_path, "--save-dir", tmp_path, data=data)
    write("checkpoint_last.pt", 20)
    write("checkpoint3.pt", 30)
    monkeypatch.chdir(tmp_path)
    trainer.load_checkpoint("checkpoint_last.pt")
    assert trainer.get_num_updates() == 30


def settings(folder, **options):
    return OmegaConf.structured(CheckpointConfig(save_dir=str(folder), **options))


@pytest.mark.parametrize("val_loss, best", [(2.0, 2.0), (2.5, 2.0), (None, None)])
def test_a_best_model_that_was_not_copied_is_copied(tmp_path, write, val_loss, best):
    last, file = write("checkpoint_last.pt", 20), tmp_path / "checkpoint_best.pt"
    write(file.name, 10)
    before = file.read_bytes()
    newer = write("checkpoint3.pt", 30, val_loss=val_loss, best=best)
    for path in (tmp_path / "checkpoint_best.pt", last):
        assert resumed_from(last, settings(tmp_path, no_save=True)) == newer
        assert path.read_bytes() != newer.read_bytes()
    assert resumed_from(last, settings(tmp_path)) == newer
    assert file.read_bytes() == (newer.read_bytes() if val_loss == 2.0 else before)
    assert last.read_bytes() == newer.read_bytes()


def test_what_somebody_went_back_from_is_set_aside(tmp_path, write, caplog):
    """And nothing else: no other run's, no average, none of fewer updates or of an earlier epoch
    (--reset-optimizer starts the count of updates again)."""
    names = ["checkpoint3.pt", "checkpoint_4_41.pt"]
    write("checkpoint2.pt", 20)
    for name, updates in zip(names, (30, 41), strict=True):
        write(name, updates)
    write("checkpoint1.pt", 90, epoch=1)
    write("checkpoint5.pt", 50, save_dir=tmp_path / "other")
    write("checkpoint6.pt", 60, optimizer=False)
    write("checkpoint_best.pt", 70)
    last = write("checkpoint_last.pt", 20)
    for options in ({"no_save": True}, {"reset_lr_scheduler": True}):
        assert resumed_from(last, settings(tmp_path, **options)) == last
    assert not list(tmp_path.glob("*.abandoned"))
    os.utime(last, (0, 0))  # copied with its old time
    assert resumed_from(last, settings(tmp_path)) == last
    assert set_aside(tmp_path) == [f"{name}.abandoned" for name in names]
    assert len(list(tmp_path.glob("*.pt"))) == 6 and "goes back to update 20" in caplog.text


@pytest.mark.parametrize("writes", [0, 1])
def test_a_full_disk_does_not_lose_the_best_model(tmp_path, write, monkeypatch, writes):
    """Training resumes after this many of the two copies, and the next start makes both."""
    last, copy, left = write("checkpoint_last.pt", 20), last_good.copy, [None] * writes
    newer = write("checkpoint3.pt", 30, val_loss=2.0, best=2.0)

    def copy_while_there_is_room(source, target):
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left.pop()
        copy(source, target)

    with monkeypatch.context() as full_disk:
        full_disk.setattr(last_good, "copy", copy_while_there_is_room)
        assert resumed_from(last, settings(tmp_path)) == newer
    resumed_from(last, settings(tmp_path))
    for path in (last, tmp_path / "checkpoint_best.pt"):
        assert path.read_bytes() == newer.read_bytes()


def test_a_folder_among_the_checkpoints_is_no_checkpoint(tmp_path, write):
    whole, last = write("checkpoint2.pt", 20), write("checkpoint_last.pt", 20)
    (tmp_path / "checkpoint_old.pt").mkdir()
    last.write_bytes(b"")
    assert newest_good(last) == whole


def set_aside(folder):
    return sorted(path.name for path in folder.glob("*.abandoned"))


def test_what_is_further_in_the_same_epoch_is_set_aside(tmp_path, write):
    """An average of the last updates would hold it."""
    for updates in (21, 25):
        write(f"checkpoint_2_{updates}.pt", updates)
    resumed_from(write("checkpoint_last.pt", 22), settings(tmp_path))
    assert set_aside(tmp_path) == ["checkpoint_2_25.pt.abandoned"]


def test_a_later_epoch_of_fewer_updates_is_not_set_aside(tmp_path, write):
    write("checkpoint3.pt", 15, epoch=3)
    resumed_from(write("checkpoint_last.pt", 20, epoch=2), settings(tmp_path))
    assert not set_aside(tmp_path)


def test_another_runs_last_checkpoint_sets_nothing_aside(tmp_path, write):
    write("checkpoint3.pt", 30)
    for options in ({}, {"reset_dataloader": True}):
        resumed_from(write("checkpoint_last.pt", 20, "elsewhere"), settings(tmp_path, **options))
    assert not set_aside(tmp_path)


@pytest.mark.parametrize("reset", ["reset_optimizer", "reset_dataloader"])
def test_what_is_counted_anew_is_set_aside(tmp_path, write, reset):
    """--keep-interval-updates and --keep-last-epochs removed each new checkpoint instead."""
    for name, updates in (("checkpoint2.pt", 20), ("checkpoint_2_18.pt", 18)):
        write(name, updates)
    write("checkpoint_2_19.pt", 19, save_dir=tmp_path / "other")
    resumed_from(write("checkpoint_last.pt", 20), settings(tmp_path, **{reset: True}))
    names = {"reset_optimizer": "checkpoint_2_18.pt", "reset_dataloader": "checkpoint2.pt"}
    assert set_aside(tmp_path) == [f"{names[reset]}.abandoned"]


def test_a_link_to_an_earlier_checkpoint_goes_back_to_it(tmp_path, write):
    earlier, last = write("checkpoint2.pt", 20), tmp_path / "checkpoint_last.pt"
    write("checkpoint3.pt", 30)
    last.symlink_to(earlier)
    assert resumed_from(last, settings(tmp_path)) == last
    assert set_aside(tmp_path) == ["checkpoint3.pt.abandoned"]


@pytest.mark.slow
def test_an_average_is_of_the_training_that_goes_on(data, tmp_path):
    folder = tmp_path / "run"

    def train_epochs(number):
        command = training(data, folder, "--max-update", 0, "--max-epoch", number)
        command.remove("--no-epoch-checkpoints")
        run(*command, "--keep-last-epochs", 4)

    train_epochs(4)
    shutil.copy(folder / "checkpoint2.pt", folder / "checkpoint_last.pt")
    train_epochs(3)
    average = ("transformer-plugin", "average", "--last", 2, "--by", "epochs")
    done = run(*average, "--checkpoints", folder, "--output", folder / "averaged.pt")
    assert "mean of 2 checkpoints (checkpoint2.pt, checkpoint3.pt)" in done.stdout
