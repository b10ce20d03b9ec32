"""A run that is stopped, at any moment of any epoch and by whatever, goes on as the same run."""

import re
import shutil

import pytest
import torch
from fairseq_commands import REPO, run, training

FOLDER = REPO / "tests/training/signal_criterion"
EPOCHS, SAVE_UPDATES = 5, 2
FLAGS = (
    *("--train-subset", "valid", "--max-tokens", 1200, "--max-update", 0, "--max-epoch", EPOCHS),
    *("--user-dir", FOLDER, "--criterion", "signal_cross_entropy"),
    *("--save-interval-updates", SAVE_UPDATES, "--keep-interval-updates", 2),
)
GLOO = ("--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp")
STATUS = {"SIGKILL": -9, "SIGTERM": 85, "SIGUSR1": 85, None: 0}


def train(toy, folder, processes=1, *extra, at=None, validate=False):
    """Trains on; at: the signal and the batch of this process in which it comes."""
    command = training(toy / "data-bin", folder, *FLAGS, *extra)
    if validate:
        command.remove("--disable-validation")
    if processes > 1:
        launch = ("torchrun", "--standalone", "--nproc-per-node", processes, "--no-python")
        command = [*launch, REPO / "recipes/worker.sh", *command, *GLOO]
    env = {"SIGNAL_AT": f"{at[0]}@{at[1]}" if at else ""}
    done = run(*command, status=at is not None, env=env)
    if processes == 1:
        assert done.returncode == STATUS[at and at[0]], done.stderr
    return done.stdout + done.stderr


def parameters(folder):
    return torch.load(folder / "checkpoint_last.pt", weights_only=False)["model"]


def assert_same(folder, expected):
    for name, tensor in parameters(folder).items():
        assert torch.equal(tensor, expected[name]), name


def updates(folder):
    state = torch.load(folder / "checkpoint_last.pt", weights_only=False)
    return state["optimizer_history"][-1]["num_updates"]


def whole_run(toy, folder, processes):
    train(toy, folder, processes)
    total = updates(folder)
    assert total % EPOCHS == 0
    return parameters(folder), total // EPOCHS


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    """The weights of an undisturbed run, and the updates of an epoch."""
    return whole_run(toy, tmp_path_factory.mktemp("whole"), 1)


@pytest.fixture(scope="module")
def whole_of_two(toy, tmp_path_factory):
    return whole_run(toy, tmp_path_factory.mktemp("two"), 2)


def test_stopped_once_in_each_epoch(toy, tmp_path, whole):
    expected, epoch = whole
    middle = epoch // 2
    log = train(toy, tmp_path, at=("SIGUSR1", middle))
    assert f"SIGUSR1: training has stopped after update {middle}" in log
    assert updates(tmp_path) == middle
    train(toy, tmp_path, at=("SIGKILL", epoch))  # in the middle of epoch 2
    saved = updates(tmp_path)
    assert epoch < saved < middle + epoch
    train(toy, tmp_path, 1, "--max-update", 2 * epoch + middle + 1)
    train(toy, tmp_path, at=("SIGTERM", 2 * epoch - middle - 1))  # in the last update of epoch 4
    assert updates(tmp_path) == 4 * epoch
    train(toy, tmp_path)
    assert updates(tmp_path) == EPOCHS * epoch
    assert_same(tmp_path, expected)


@pytest.mark.slow
def test_two_processes_stopped_in_the_third_epoch(toy, tmp_path, whole_of_two):
    expected, epoch = whole_of_two
    train(toy, tmp_path, 2, at=("SIGTERM", 2 * epoch + epoch // 2))
    assert 2 * epoch < updates(tmp_path) < 3 * epoch
    train(toy, tmp_path, 2)
    assert_same(tmp_path, expected)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("stop", ["SIGKILL", "SIGTERM", "--max-update"])
@pytest.mark.parametrize("epoch_number", [1, 2, 3, 4])
@pytest.mark.parametrize("place", ["middle", "end"])
def test_stopped_anywhere(toy, tmp_path, request, processes, stop, epoch_number, place):
    expected, epoch = request.getfixturevalue("whole" if processes == 1 else "whole_of_two")
    update = (epoch_number - 1) * epoch + (epoch // 2 if place == "middle" else epoch)
    if stop == "--max-update":
        train(toy, tmp_path, processes, "--max-update", update)
    else:
        train(toy, tmp_path, processes, at=(stop, update))
    train(toy, tmp_path, processes)
    assert_same(tmp_path, expected)


def test_other_batches_go_on_at_the_same_share_of_the_epoch(toy, tmp_path, whole):
    _, epoch = whole
    train(toy, tmp_path / "same", 1, "--max-update", epoch // 2)
    shutil.copytree(tmp_path / "same", tmp_path / "anew")
    smaller = ("--max-tokens", 600, "--max-epoch", 1)
    log = train(toy, tmp_path / "same", 1, *smaller)
    (read, now, before, then), *more = re.findall(
        r"resumes after batch (\d+) of (\d+), .* after batch (\d+) of (\d+)", log
    )
    assert not more and (int(before), int(then)) == (epoch // 2, epoch) and int(now) > epoch
    assert int(read) == epoch // 2 * int(now) // epoch
    assert updates(tmp_path / "same") == epoch // 2 + int(now) - int(read)

    log = train(toy, tmp_path / "anew", 1, *smaller, "--reset-dataloader")
    assert "resumes after batch" not in log
    assert updates(tmp_path / "anew") == epoch // 2 + int(now)


def test_no_memory_in_one_of_two_processes_stops_training(toy, tmp_path):
    """fairseq would count the tokens of a batch whose gradient it has dropped."""
    log = train(toy, tmp_path, 2, "--update-freq", 2, at=("MEMORY", 4))
    assert "RuntimeError: CUDA out of memory" in log


def test_patience_counts_on(toy, tmp_path):
    """No validation improves where nothing is learned: training ends in epoch 1 + patience."""
    flags = ("--lr", 0, "--patience", 2, "--valid-subset", "test", "--save-interval-updates", 0)
    train(toy, tmp_path, 1, *flags, "--max-epoch", 2, validate=True)
    log = train(toy, tmp_path, 1, *flags, validate=True)
    assert "early stop since valid performance hasn't improved for last 2 runs" in log
    ended = updates(tmp_path)
    assert "nothing to train: --patience 2" in train(toy, tmp_path, 1, *flags, validate=True)
    assert updates(tmp_path) == ended == 3 * (ended // 3)
    flags += ("--max-epoch", 4, "--best-checkpoint-metric", "nll_loss")
    log = train(toy, tmp_path, 1, *flags, validate=True)
    assert "the best loss so far does not count for --best-checkpoint-metric nll_loss" in log
    assert updates(tmp_path) == 4 * (ended // 3)


@pytest.mark.slow
def test_patience_of_another_run_does_not_count(toy, tmp_path):
    flags = ("--patience", 1, "--valid-subset", "test", "--save-interval-updates", 0)
    old, new = tmp_path / "old", tmp_path / "new"
    train(toy, old, 1, *flags, "--lr", 0, validate=True)
    assert "nothing to train: --patience 1" in train(toy, old, 1, *flags, validate=True)
    more = ("--restore-file", old / "checkpoint_last.pt", "--reset-dataloader", "--max-epoch", 1)
    train(toy, new, 1, *flags, *more, validate=True)
    assert updates(new) == updates(old) * 3 // 2


@pytest.mark.slow
def test_an_interval_checkpoint_for_every_interval(toy, tmp_path, whole):
    """Every second interval ends with an epoch, for which no other checkpoint is kept."""
    _, epoch = whole
    assert epoch % 2 == 0
    interval = epoch // 2
    flags = ("--save-interval-updates", interval, "--keep-interval-updates", 3)
    train(toy, tmp_path, 1, *flags, "--max-epoch", 2)
    files = [f"checkpoint_{e}_{n * interval}.pt" for e, n in ((1, 2), (2, 3), (2, 4))]
    assert {path.name for path in tmp_path.glob("checkpoint_*_*.pt")} == set(files)
    average = ("transformer-plugin", "average", "--last", 3, "--by", "updates")
    done = run(*average, "--checkpoints", tmp_path, "--output", tmp_path / "averaged.pt")
    assert f"mean of 3 checkpoints ({', '.join(files)}): " in done.stdout


def test_no_update_is_made_after_stop_time_hours(toy, tmp_path):
    flags = ("--stop-time-hours", 1e-9)
    train(toy, tmp_path, 1, *flags)
    assert updates(tmp_path) == 1
    assert "nothing to train: --stop-time-hours 1e-09" in train(toy, tmp_path, 1, *flags)
    assert updates(tmp_path) == 1
