"""Signals end training with a checkpoint, from which it goes on as if it had not stopped."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from fairseq_commands import REPO, environment, train, training

from transformer_plugin.training.run_lock import hold_lock

FLAGS = ("--max-update", 60, "--no-progress-bar", "--log-format", "simple", "--log-interval", 1)


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    train(toy / "data-bin", folder, *FLAGS)
    return torch.load(folder / "checkpoint_last.pt", weights_only=False)["model"]


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.slow)]
)
def test_stopped_and_resumed_bit_for_bit(toy, tmp_path, whole, number):
    log = tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            training(toy / "data-bin", tmp_path, *FLAGS),
            cwd=REPO,
            env=environment(),
            stdout=file,
            stderr=file,
        )
        deadline = time.monotonic() + 120
        while "num_updates=5," not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == 85, log.read_text()
    assert f"{number.name}: training stops after update" in log.read_text()
    stopped = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert 5 <= stopped["optimizer_history"][-1]["num_updates"] < 60
    train(toy / "data-bin", tmp_path, *FLAGS)
    resumed = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)["model"]
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


HOLDING = """
import sys, time, pathlib
from transformer_plugin.training.run_lock import hold_lock
hold_lock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
time.sleep(100)
"""


def test_two_runs_in_one_folder(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(SystemExit, match=f"process {holder.pid} on .* --save-dir"):
            hold_lock(tmp_path, patience=0)
    finally:
        holder.kill()
        holder.wait()
    hold_lock(tmp_path, patience=0)  # a killed run holds nothing
