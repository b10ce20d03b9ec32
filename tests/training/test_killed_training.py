"""Runs killed at any moment, in the middle of a checkpoint too, end as if undisturbed."""

import random
import subprocess
import time

import pytest
import torch
from fairseq_commands import REPO, environment, train, training

UPDATES = 30
FLAGS = ("--max-update", UPDATES, "--save-interval-updates", 2, "--keep-interval-updates", 2)


def parameters(folder):
    return torch.load(folder / "checkpoint_last.pt", weights_only=False)["model"]


def assert_same(one, two):
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, two[name]), name


@pytest.fixture(scope="module")
def undisturbed(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    started = time.monotonic()
    train(toy / "data-bin", folder, *FLAGS)
    return parameters(folder), time.monotonic() - started


def unfinished(folder):
    return [path.name for path in folder.glob(".*.partial")]


def start(data, folder):
    return subprocess.Popen(
        training(data, folder, *FLAGS),
        cwd=REPO,
        env=environment(forks=False),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_while_writing(data, folder, chance):
    """Kills a run within a write, chosen by chance; whether it was in one when it died."""
    process = start(data, folder)
    writes, seen, names = chance.randrange(1, 30), 0, []
    while process.poll() is None:
        now = unfinished(folder)
        seen += bool(now and now != names)
        names = now
        if seen >= writes:
            process.kill()
        time.sleep(0.0005)
    return bool(unfinished(folder))


def kill_after(seconds, data, folder):
    process = start(data, folder)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def check_kills(toy, folder, undisturbed, in_writes, anywhere):
    expected, seconds = undisturbed
    chance = random.Random(1)
    hit = tried = 0
    while hit < in_writes:
        tried += 1
        assert tried <= 3 * in_writes + 3, "kills do not hit the writes"
        run = folder / f"write{tried}"
        run.mkdir()
        hit += kill_while_writing(toy / "data-bin", run, chance)
        train(toy / "data-bin", run, *FLAGS)
        assert_same(parameters(run), expected)
        assert not unfinished(run)
    for i in range(anywhere):
        run = folder / f"anywhere{i}"
        kill_after(chance.uniform(0.3, 1.0) * seconds, toy / "data-bin", run)
        train(toy / "data-bin", run, *FLAGS)
        assert_same(parameters(run), expected)


@pytest.mark.slow
def test_killed_runs_go_on(toy, tmp_path, undisturbed):
    check_kills(toy, tmp_path, undisturbed, in_writes=1, anywhere=1)


def test_a_finished_run_is_left_as_it_is(toy, tmp_path):
    train(toy / "data-bin", tmp_path)
    before = (tmp_path / "checkpoint_last.pt").stat().st_mtime_ns
    done = train(toy / "data-bin", tmp_path)
    assert "nothing to train: --max-update 12 is reached" in done.stdout + done.stderr
    assert (tmp_path / "checkpoint_last.pt").stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_killed_runs_go_on(toy, tmp_path, undisturbed):
    check_kills(toy, tmp_path, undisturbed, in_writes=25, anywhere=25)
