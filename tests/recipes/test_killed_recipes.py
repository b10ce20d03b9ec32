"""A recipe that is killed leaves no process behind and no hole in a log, and can be run again."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_programs import recipes
from recipe_environment import environment

from transformer_plugin.training.atomic_checkpoints import not_written

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


@pytest.fixture(autouse=True)
def default_hangup():
    """`nohup make test` would make all processes ignore SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


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


def test_training_ends_when_its_recipe_is_killed(tmp_path):
    env = recipes(tmp_path, fairseq_train=TRAIN)
    first = training(tmp_path, **env, GOES_ON="1")
    pid = tmp_path / "pid"
    until(lambda: pid.exists() and pid.read_text().strip())
    command = int(pid.read_text())
    assert parent(command) == first.pid, "no process lies between them"
    log = tmp_path / "runs/toy/train.log"
    until(lambda: log.read_text().count("a line") > 3)
    first.kill()
    until(lambda: not alive(command), seconds=5)
    first.communicate()

    second = training(tmp_path, **env)
    output = second.communicate(timeout=60)[0]
    assert second.returncode == 0, output
    text = log.read_bytes()
    assert b"\0" not in text
    lines = text.decode().splitlines()
    assert lines[0] == "begins" and lines[-3:] == ["saved", "begins", "ends"]
    assert set(lines[1:-3]) == {"a line of training"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP])
def test_a_recipe_that_is_told_to_end_lets_training_save(tmp_path, number):
    env = recipes(tmp_path, fairseq_train=TRAIN)
    process = training(tmp_path, **env, GOES_ON="1")
    until((tmp_path / "pid").exists)
    # Ctrl-C reaches all processes of a terminal, and so does its end.
    to_all = number in (signal.SIGINT, signal.SIGHUP)
    (os.killpg if to_all else os.kill)(process.pid, number)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 85, output
    name = {signal.SIGINT: "Ctrl-C"}.get(number) or signal.Signals(number).name
    again = "the same command continues from the last checkpoint"
    assert f"train was stopped by {name}; {again}" in output
    log = (tmp_path / "runs/toy/train.log").read_text()
    assert log.endswith("saved\n") and log.count("saved") == 1
    entries = json.loads((tmp_path / "runs/toy/manifest.json").read_text())["stages"]["train"]
    assert [entry["status"] for entry in entries] == [85]
    output = training(tmp_path, **env, DROPOUT="0.3").communicate(timeout=60)[0]
    assert "train: settings changed since it was started; continuing from what" in output


def test_the_end_of_a_terminal_does_not_stop_what_nohup_has_started(tmp_path):
    env = recipes(tmp_path, fairseq_train=TRAIN) | {"GOES_ON": "1"}
    process = subprocess.Popen(
        ["nohup", tmp_path / "recipes/train.sh", "toy"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=env,
        start_new_session=True,
    )  # fmt: skip
    until((tmp_path / "pid").exists)
    os.killpg(process.pid, signal.SIGHUP)
    log = tmp_path / "runs/toy/train.log"
    before = log.read_text().count("a line")
    until(lambda: log.read_text().count("a line") > before + 20)
    process.terminate()
    assert "train was stopped by SIGTERM" in process.communicate(timeout=30)[0]
    assert process.returncode == 85


FULL = not_written("checkpoint_last.pt", OSError(errno.ENOSPC, "No space left on device"))
TORCHRUN = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15"
BEGUN = "2026-01-31 12:00:00 | INFO | fairseq.trainer | begin training epoch 1"
KILLS = (
    "W1126 18:42:38.223000 7 torch/distributed/elastic/multiprocessing/api.py:1047] Unable to"
    " shutdown process 9 via 15, forcefully exiting via 9"
)
RAISE = "killed by torchrun before it had saved: raise TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
FAILED = {  # what training says after the signal, and its status; then the status of the recipe
    "a save that fails": (FULL, 1, 1),
    "an error": ("RuntimeError: NCCL error", 1, 1),
    "torchrun": ("torch.distributed.elastic.multiprocessing.api.SignalException: got 15", 1, 85),
    "nothing": ("", 143, 85),
}


@pytest.mark.parametrize("message, status, expected", FAILED.values(), ids=FAILED)
def test_training_that_fails_after_a_signal_has_not_saved(tmp_path, message, status, expected):
    """A job that ends with 85 is queued again: with a full disk it would be for ever."""
    script = TRAIN.replace("echo saved; exit 85", f'echo "{message}"; exit {status}')
    process = training(tmp_path, **recipes(tmp_path, fairseq_train=script), GOES_ON="1")
    until((tmp_path / "pid").exists)
    os.kill(process.pid, signal.SIGTERM)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == expected, output
    assert not message or (message in output) == (expected == 1)
    assert ("was stopped by SIGTERM" in output) == (expected == 85)


@pytest.mark.parametrize(
    "lines, reason",
    [
        ([FULL, "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer"], FULL),
        ([BEGUN, KILLS], RAISE),
    ],
    ids=["full", "killed"],
)
def test_launchers_that_end_after_a_signal_do_not_hide_that_nothing_was_saved(
    tmp_path, lines, reason
):
    warning = KILLS.split("]")[0] + "] Received 15 death signal, shutting down workers"
    script = "; ".join(f'echo "{line}"' for line in [warning, *lines, TORCHRUN])
    script = TRAIN.replace("echo saved; exit 85", f"{script}; exit 1")
    process = training(tmp_path, **recipes(tmp_path, fairseq_train=script), GOES_ON="1")
    until((tmp_path / "pid").exists)
    os.kill(process.pid, signal.SIGTERM)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 1, output
    assert f"train failed with status 1: {reason}; log" in output


def test_a_run_of_several_seeds_ends_as_that_of_the_seed(tmp_path):
    """It is a recipe in a recipe: neither says 85 if nothing was saved."""
    script = TRAIN.replace("echo saved; exit 85", f'echo "{FULL}"; exit 1')
    env = recipes(tmp_path, fairseq_train=script) | {"SEEDS": "1 2"}
    process = training(tmp_path, **env, GOES_ON="1")
    until((tmp_path / "pid").exists)
    os.kill(process.pid, signal.SIGTERM)
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 1 and FULL in output, output


def test_a_killed_command_is_said_to_be_killed(tmp_path):
    """And not what its log happens to end with."""
    warning = "/x/y.py:5: FutureWarning: \\nis deprecated\\n  with deprecated():"
    script = TRAIN.replace("echo begins", f"printf '{warning}\\n'; kill -KILL $$")
    (tmp_path / "runs/toy/checkpoints").mkdir(parents=True)
    (tmp_path / "runs/toy/checkpoints/checkpoint_last.pt").touch()
    process = training(tmp_path, **recipes(tmp_path, fairseq_train=script))
    output = process.communicate(timeout=30)[0]
    assert process.returncode == 137, output
    assert "status 137: killed by SIGKILL, perhaps for lack of memory; log: " in output
    assert output.endswith("; the same command continues from the last checkpoint\n")


def test_a_log_goes_on_after_a_kill_before_the_last_checkpoint_was_copied(tmp_path):
    folder = tmp_path / "runs/toy"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints/checkpoint1.pt").touch()
    (folder / "train.log").write_text("before\n")
    process = training(tmp_path, **recipes(tmp_path, fairseq_train=TRAIN))
    assert process.communicate(timeout=60)[0] and process.returncode == 0
    assert (folder / "train.log").read_text() == "before\nbegins\nends\n"


def test_no_stage_begins_after_an_interruption(tmp_path):
    """A signal that comes before the first command has started."""
    env = recipes(tmp_path, fairseq_train=TRAIN)
    script = (
        "from transformer_plugin.runs.process import Supervisor; import os, signal\n"
        "s = Supervisor(); os.kill(os.getpid(), signal.SIGTERM)\n"
        "s.start(['sleep', '100']); s.ended(); print(s.status)"
    )
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True,
                          check=True, timeout=60)  # fmt: skip
    assert done.stdout == "85\n"


def test_two_writers_leave_no_hole_in_a_log(tmp_path):
    def logged(script):
        stage = ["stage", "--log", str(tmp_path / "x.log"), "--", "bash", "-c", script]
        folders = ["--run", str(tmp_path), "--data", str(tmp_path), "--node-rank", "1"]  # no lock
        return subprocess.Popen(
            ["transformer-plugin", "recipe", "run", "--script", "x", "--experiment", "x", *folders,
             str(len(stage)), *stage], stdout=subprocess.DEVNULL, env=environment(),
        )  # fmt: skip

    log, go = tmp_path / "x.node1.log", tmp_path / "go"
    first = logged(f"echo {'x' * 5000}; until [ -e {go} ]; do sleep 0.01; done; echo first")
    until(lambda: log.exists() and log.stat().st_size)
    assert logged("echo second").wait() == 0
    go.touch()
    assert first.wait() == 0
    assert log.read_text() == "second\nfirst\n"
