"""A recipe that is killed leaves no process behind and no hole in a log, and can be run again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recipe_environment import REPO
from stand_ins import recipes

# Logs a line every 10 ms; saves and ends when it is told to, or at once when GOES_ON is not set.
TRAIN = """
mkdir -p "$RUNS/toy/checkpoints"
trap 'touch "$RUNS/toy/checkpoints/checkpoint_last.pt"; echo saved; exit 85' TERM
echo $$ > "$HERE/pid"
echo begins
while [[ -n ${GOES_ON:-} ]]; do echo "a line of training"; sleep 0.01; done
touch "$RUNS/toy/checkpoints/checkpoint_last.pt"
echo ends
"""


def until(found, seconds=30):
    deadline = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def training(tmp_path, **knobs):
    return subprocess.Popen(
        [tmp_path / "recipes/run.sh", "toy", "--from", "train", "--to", "train"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=knobs,
        start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("victim", range(4), ids=["run.sh", "its wait", "train.sh", "its wait "])
def test_training_ends_whatever_is_killed_above_it(tmp_path, victim):
    env = recipes(tmp_path, fairseq_train=TRAIN)
    first = training(tmp_path, **env, GOES_ON="1")
    pid = tmp_path / "pid"
    until(lambda: pid.exists() and pid.read_text().strip())
    chain = [int(pid.read_text())]
    while chain[-1] != first.pid:
        chain.append(parent(chain[-1]))
    assert len(chain) == 5
    log = tmp_path / "runs/toy/train.log"
    until(lambda: log.read_text().count("a line") > 3)
    os.kill(chain[::-1][victim], signal.SIGKILL)
    until(lambda: not any(alive(number) for number in chain), seconds=5)
    first.communicate()

    second = training(tmp_path, **env)
    output = second.communicate(timeout=60)[0]
    assert second.returncode == 0, output
    text = log.read_bytes()
    assert b"\0" not in text
    lines = text.decode().splitlines()
    assert lines[0] == "begins" and lines[-3:] == ["saved", "begins", "ends"]
    assert set(lines[1:-3]) == {"a line of training"}


def test_run_sh_that_is_told_to_end_hands_it_on(tmp_path):
    env = recipes(tmp_path, fairseq_train=TRAIN)
    process = training(tmp_path, **env, GOES_ON="1")
    until((tmp_path / "pid").exists)
    process.terminate()
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 85 and "training was interrupted; the same command" in output
    assert (tmp_path / "runs/toy/train.log").read_text().endswith("saved\n")


def test_two_writers_leave_no_hole_in_a_log(tmp_path):
    def logged(script):
        return subprocess.Popen(
            [sys.executable, REPO / "recipes/command.py", str(os.getpid()), "--log",
             tmp_path / "x.log", "--", "bash", "-c", script], stdout=subprocess.DEVNULL,
        )  # fmt: skip

    go = tmp_path / "go"
    first = logged(f"echo {'x' * 5000}; until [ -e {go} ]; do sleep 0.01; done; echo first")
    until(lambda: (tmp_path / "x.log").exists() and (tmp_path / "x.log").stat().st_size)
    assert logged("echo second").wait() == 0
    go.touch()
    assert first.wait() == 0
    assert (tmp_path / "x.log").read_text() == "second\nfirst\n"
