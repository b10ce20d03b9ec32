"""Several processes train as one does, on one machine or on more; none is left when one is lost."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import fairseq_commands
import pytest
import torch
from recipe_environment import REPO, environment

NUMBERS = {
    "MAX_EPOCH": "",
    "MAX_TOKENS": "256",
    "UPDATE_TOKENS": "512",
    "SAVE_UPDATES": "10",
    "AVERAGE": "9",
    "DROPOUT": "0",
    "OMP_NUM_THREADS": "1",
}


def start(data, runs, *flags, **knobs):
    """recipes/train.sh on the way."""
    numbers = NUMBERS | {"DATA_DIR": str(data), "RUNS": str(runs)}
    return subprocess.Popen(
        [REPO / "recipes/train.sh", "toy", "--disable-validation", *flags],
        env=environment(**numbers | {name: str(value) for name, value in knobs.items()}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def training(small_data, tmp_path):
    """training(folder, FLAG..., NAME=VALUE) starts recipes/train.sh; all end with the test."""
    started = []

    def begin(folder, *flags, **knobs):
        started.append(start(small_data, tmp_path / folder, *flags, **knobs))
        return started[-1]

    yield begin
    for process in started:
        process.terminate()


def ended(process, status=0):
    output = process.communicate(timeout=100)[0]
    assert process.returncode == status, output[-3000:]
    return output


def parameters(runs, updates):
    path = runs / f"toy/checkpoints/checkpoint_1_{updates}.pt"
    return torch.load(path, weights_only=False)["model"]


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], rtol=0, atol=1e-6)


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


@pytest.fixture(scope="module")
def alone(small_data, tmp_path_factory):
    """The folder of one process that accumulates two batches an update, for 60 updates."""
    runs = tmp_path_factory.mktemp("alone")
    ended(start(small_data, runs, MAX_UPDATE=60))
    return runs


def workers(rank, folder):
    """Processes of this rank that train below a folder."""
    wanted = f"--distributed-rank\0{rank}\0"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text()
        except OSError:
            continue
        if wanted in command and str(folder) in command and "torchrun" not in command:
            yield int(path.parent.name)


def until(found, seconds=60):
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_processes_are_one_with_two_batches_whatever_happens(training, alone, tmp_path):
    runs = tmp_path / "two"
    checkpoints = runs / "toy/checkpoints"
    knobs = {"GPUS": 2, "MASTER_PORT": free_port(), "MAX_UPDATE": 60}
    first = training("two", **knobs)
    until((checkpoints / "checkpoint_1_10.pt").exists)
    os.kill(*workers(1, runs), signal.SIGKILL)
    killed = time.monotonic()
    output = ended(first, status=1)
    assert time.monotonic() - killed < 60
    assert "train failed with status 1: rank 1: Signal 9 (SIGKILL)" in output
    assert "the same command continues from the last checkpoint" in output
    until(lambda: not [*workers(0, runs), *workers(1, runs)], seconds=5)

    second = training("two", **knobs)
    until((checkpoints / "checkpoint_1_30.pt").exists)
    second.send_signal(signal.SIGTERM)
    output = ended(second, status=85)
    assert "continues from checkpoint_last.pt" in output and "stopped by SIGTERM" in output
    assert not [*workers(0, runs), *workers(1, runs)]

    ended(training("two", **knobs))
    for updates in (20, 60):
        assert_same(parameters(alone, updates), parameters(runs, updates))
    attempts = json.loads((runs / "toy/manifest.json").read_text())["stages"]["train"]
    assert [attempt["status"] for attempt in attempts] == [1, 85, 0]
    assert attempts[-1]["starts"] == 3 and attempts[-1]["devices"] == 2


@pytest.mark.slow
def test_a_last_update_that_one_process_has_less_for(training, tmp_path):
    """Of 19 batches, four an update, the last update has three: two for one process, one for the
    other, which fairseq would not count."""
    numbers = {"MAX_TOKENS": 1800, "UPDATE_TOKENS": 7200, "MAX_EPOCH": 1, "SAVE_UPDATES": ""}
    ended(training("one", "--log-interval", "1", GPUS=1, **numbers))
    ended(training("two", "--log-interval", "1", GPUS=2, MASTER_PORT=free_port(), **numbers))
    one, two = (
        re.findall(r"loss=(\S+), .*wpb=(\S+), .*num_updates=(\S+), .*gnorm=(\S+),", log.read_text())
        for log in (tmp_path / f"{name}/toy/train.log" for name in ("one", "two"))
    )
    assert len(one) == 5
    for mine, theirs in zip(one, two, strict=True):
        assert [*map(float, mine)] == pytest.approx([*map(float, theirs)], rel=1e-3)


@pytest.mark.slow
def test_the_number_of_processes_may_change(training, alone, tmp_path):
    """Data are neither skipped nor repeated, also beyond the middle of an epoch."""
    checkpoints = tmp_path / "changed/toy/checkpoints"
    checkpoints.mkdir(parents=True)
    shutil.copy(alone / "toy/checkpoints/checkpoint_1_40.pt", checkpoints / "checkpoint_last.pt")
    ended(training("changed", GPUS=2, MASTER_PORT=free_port(), MAX_UPDATE=50))
    ended(training("changed", GPUS=1, MAX_UPDATE=60))
    for updates in (50, 60):
        assert_same(parameters(alone, updates), parameters(tmp_path / "changed", updates))


@pytest.mark.slow
def test_status_85_of_two_processes_means_that_they_have_saved(training, tmp_path):
    knobs = {"GPUS": 2, "MASTER_PORT": free_port(), "MAX_UPDATE": 400, "SAVE_UPDATES": 400}
    log = tmp_path / "full/toy/train.log"
    cannot_save = training("full", **knobs)
    until(lambda: log.exists() and "num_updates=10," in log.read_text())
    (tmp_path / "full/toy/checkpoints/checkpoint_last.pt").mkdir()
    cannot_save.send_signal(signal.SIGTERM)
    assert "checkpoint_last.pt: not written (" in ended(cannot_save, status=1)

    log = tmp_path / "one/toy/train.log"
    signal_to_one = training("one", **knobs)
    until(lambda: log.exists() and "num_updates=10," in log.read_text())
    os.kill(*workers(1, tmp_path / "one"), signal.SIGUSR1)
    output = ended(signal_to_one, status=85)
    assert "train was stopped; the same command continues" in output


@pytest.mark.slow
def test_processes_with_loaders_save_whatever_tells_them_to_stop(training, tmp_path):
    """Not in forks of a server: signals go to process groups, and to the children of a process."""
    runs = tmp_path / "runs"
    log = runs / "toy/train.log"

    def begin():
        return training(
            *("runs", "--num-workers", "2"), GPUS=2, MASTER_PORT=free_port(), MAX_UPDATE=100_000,
            PATH=fairseq_commands.environment(forks=False)["PATH"],
        )  # fmt: skip

    def saved():
        return re.findall("training has stopped after update .* is saved", log.read_text())

    def ended_everywhere():
        return not [*workers(0, runs), *workers(1, runs)]

    first = begin()
    until((runs / "toy/checkpoints/checkpoint_1_10.pt").exists)
    assert len([*workers(0, runs)]) == 3
    os.killpg(first.pid, signal.SIGUSR1)
    assert "train was stopped by SIGUSR1" in ended(first, status=85)
    assert len(saved()) == 1, log.read_text()
    assert "SignalException" in log.read_text(), "torchrun waited for them"
    until(ended_everywhere, seconds=10)

    before = log.stat().st_size
    second = begin()
    until(lambda: b"begin training epoch" in log.read_bytes()[before:])
    (torchrun,) = Path(f"/proc/{second.pid}/task/{second.pid}/children").read_text().split()
    os.kill(int(torchrun), signal.SIGKILL)
    ended(second, status=137)
    until(ended_everywhere, seconds=30)
    assert len(saved()) == 2, log.read_text()


@pytest.mark.slow
def test_two_machines_are_one_with_two_batches(training, alone, tmp_path):
    knobs = {"NODES": 2, "GPUS": 1, "MASTER_PORT": free_port(), "MAX_UPDATE": 20}
    nodes = [training("nodes", NODE_RANK=rank, **knobs) for rank in (0, 1)]
    for node in nodes:
        ended(node)
    assert_same(parameters(alone, 20), parameters(tmp_path / "nodes", 20))
    assert (tmp_path / "nodes/toy/train.node1.log").exists()


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs")
def test_two_gpus_are_one_with_two_batches_and_go_on(training, tmp_path):
    """By NCCL."""
    exact = {"PRECISION": "fp32-exact", "MAX_UPDATE": 60, "CUDA_VISIBLE_DEVICES": "0,1"}
    ended(training("one", GPUS=1, **exact))
    two = {"GPUS": 2, "MASTER_PORT": free_port(), **exact}
    first = training("two", **two)
    until((tmp_path / "two/toy/checkpoints/checkpoint_1_20.pt").exists)
    first.send_signal(signal.SIGTERM)
    assert "stopped by SIGTERM" in ended(first, status=85)
    ended(training("two", **two))
    for updates in (20, 60):
        one, other = (parameters(tmp_path / runs, updates) for runs in ("one", "two"))
        for name, tensor in one.items():
            torch.testing.assert_close(tensor, other[name], rtol=0, atol=1e-3)
