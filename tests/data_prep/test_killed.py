"""A preparation that is killed at any moment is finished by a second call, with the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpus_files import leftovers

from transformer_plugin.lock import file_lock

REPO = Path(__file__).resolve().parents[2]


def start(runs: Path) -> subprocess.Popen:
    """recipes/prepare.sh of the toy corpus, as the leader of a group of processes."""
    return subprocess.Popen(
        [str(REPO / "recipes/prepare.sh"), "toy"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RUNS": str(runs), "WORKERS": "2", "VOCAB_SIZE": "600"},
    )


def contents(runs: Path) -> dict[str, bytes]:
    """Every file that a preparation has written, by its path, but for those that say when."""
    return {
        str(path.relative_to(runs)): path.read_bytes()
        for path in sorted(runs.rglob("*"))
        if path.is_file() and path.name != "manifest.json" and not path.name.endswith(".lock")
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Its files, and how long it took."""
    runs = tmp_path_factory.mktemp("undisturbed")
    began = time.monotonic()
    process = start(runs)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return contents(runs), time.monotonic() - began


def kill_and_finish(runs: Path, seconds: float, expected: dict[str, bytes]) -> bool:
    """Kill a preparation with all its processes after some seconds; then finish it. Whether it was
    killed before its end."""
    process = start(runs)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    first_status = process.returncode
    assert first_status in (0, -signal.SIGKILL)
    second = start(runs)
    _, errors = second.communicate()
    assert second.returncode == 0, errors
    assert contents(runs) == expected, f"killed after {seconds:.2f} s"
    assert not leftovers(runs)
    return first_status != 0


@pytest.mark.parametrize("moment", [0.3, pytest.param(0.6, marks=pytest.mark.slow)])
def test_a_killed_preparation_is_finished_by_the_next(undisturbed, tmp_path, moment):
    expected, duration = undisturbed
    assert kill_and_finish(tmp_path, moment * duration, expected)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(20))
def test_twenty_times_at_random_moments(undisturbed, tmp_path, seed):
    expected, duration = undisturbed
    kill_and_finish(tmp_path, random.Random(seed).uniform(0, duration), expected)


def test_a_worker_that_is_killed_is_named_and_leaves_nothing(step, tmp_path):
    from corpus_files import PAIR

    for split, count in (("train", 60_000), ("valid", 3), ("test", 3)):
        for language in ("en", "de"):
            lines = (f"{language} number {n} of many lines" for n in range(count))
            (tmp_path / f"{split}.{language}").write_text("".join(f"{x}\n" for x in lines))
    process = subprocess.Popen(
        [
            sys.executable,
            str(REPO / "data-prep/clean.py"),
            "--input",
            str(tmp_path),
            "--output",
            str(tmp_path / "run/clean"),
            *PAIR,
            "--workers",
            "2",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(found := workers.read_text().split()) < 2:
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(int(found[0]), signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 2 and "a worker process was killed" in errors, errors
    assert not (tmp_path / "run/clean").exists() and not leftovers(tmp_path)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from steps import workers as p\n"
        "list(p.ordered_map(time.sleep, [60] * 4, 2))"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(REPO / "data-prep")])
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(found := workers.read_text().split()) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    limit = time.monotonic() + 10
    while any(Path(f"/proc/{number}").exists() for number in found):
        assert time.monotonic() < limit, "the workers live on"
        time.sleep(0.1)


def test_two_at_once_in_one_folder_are_refused(tmp_path):
    lock = tmp_path / "toy/.done/raw.lock"
    with file_lock(lock, "the first"):
        second = start(tmp_path)
        _, errors = second.communicate()
    assert second.returncode == 2 and f"{lock}: locked by the first (process" in errors
