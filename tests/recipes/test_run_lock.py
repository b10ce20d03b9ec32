"""A run folder has one recipe at a time, whichever it is and however the one before ended; data may
be used by many, and is not prepared anew meanwhile."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from fake_programs import recipes
from recipe_environment import REPO

from transformer_plugin.lock import DATA_LOCK, file_lock
from transformer_plugin.runs.done_file import checksums
from transformer_plugin.runs.recipe import PATIENCE

# Ends when the file `go` is there; ignores that its recipe has ended.
GENERATE = """
trap '' TERM
echo begun > "$HERE/begun.$$"
until [[ -e $HERE/go ]]; do sleep 0.01; done
echo H-0
"""
PLUGIN = '[[ $1 != hypotheses ]] || touch "$5"'  # its --output


@pytest.fixture
def env(tmp_path):
    found = recipes(tmp_path, fairseq_generate=GENERATE, transformer_plugin=PLUGIN)
    (tmp_path / "runs/toy/checkpoints").mkdir()
    (tmp_path / "runs/toy/checkpoints/averaged.pt").write_text("weights")
    return found


def start(tmp_path, env, verb, *flags, **knobs):
    return subprocess.Popen(
        [tmp_path / f"recipes/{verb}.sh", "toy", *flags], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=env | knobs, start_new_session=True,
    )  # fmt: skip


def begun(tmp_path):
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("begun.*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_each_other_verb_is_refused_and_the_first_ends_whole(tmp_path, env):
    first = start(tmp_path, env, "run", "--from", "generate", "--to", "generate")
    begun(tmp_path)
    for verb in ("prepare", "train", "score"):
        second = start(tmp_path, env, verb)
        output = second.communicate(timeout=30)[0]
        assert second.returncode == 2 and len(output.splitlines()) == 1, output
        assert output.startswith(f"{verb}.sh: {tmp_path}/runs/toy/.lock: locked by run.sh (process"
                                 f" {first.pid} on ")  # fmt: skip
    (tmp_path / "go").touch()
    output = first.communicate(timeout=30)[0]
    assert first.returncode == 0, output
    assert len(list(tmp_path.glob("begun.*"))) == 1
    assert (tmp_path / "runs/toy/generate.log").read_text() == "H-0\n"


def test_a_command_that_outlives_its_recipe_keeps_the_lock(tmp_path, env):
    first = start(tmp_path, env, "generate")
    begun(tmp_path)
    os.kill(first.pid, signal.SIGKILL)
    second = start(tmp_path, env, "generate")
    assert f"generate.sh (process {first.pid} on" in second.communicate(timeout=30)[0]
    (tmp_path / "go").touch()
    first.communicate()
    third = start(tmp_path, env, "generate")
    output = third.communicate(timeout=30)[0]
    assert third.returncode == 0, output


def test_what_only_looks_and_other_machines_need_no_lock(tmp_path, env):
    first = start(tmp_path, env, "generate")
    begun(tmp_path)
    for verb, flags, knobs in (
        ("score", (), {"NODE_RANK": "1"}),
        ("score", ("--dry-run",), {}),
        ("translate", (), {}),
    ):
        done = start(tmp_path, env, verb, *flags, **knobs)
        output = done.communicate(timeout=30)[0]
        assert "locked" not in output
    (tmp_path / "go").touch()
    first.communicate()


@pytest.mark.slow
def test_data_in_use_is_not_prepared_anew(tmp_path, env):
    (tmp_path / "runs/toy/lstm/checkpoints").mkdir(parents=True)
    (tmp_path / "runs/toy/lstm/checkpoints/averaged.pt").write_text("weights")
    shutil.copytree(REPO / "data-prep", tmp_path / "data-prep")
    shutil.rmtree(tmp_path / "runs/toy/data-bin")  # which no step has written
    prepared = start(tmp_path, env, "prepare", VOCAB_SIZE="100")
    assert prepared.wait(300) == 0, prepared.stdout.read()
    first = start(tmp_path, env, "generate")
    begun(tmp_path)
    # Another run on the same data finds it prepared and decodes too.
    words = ("--from", "prepare", "--to", "prepare")
    done = start(tmp_path, env, "run", *words, VOCAB_SIZE="100", SYSTEM="lstm")
    assert done.wait(300) == 0, done.stdout.read()
    second = start(tmp_path, env, "generate", SYSTEM="lstm")
    deadline = time.monotonic() + 30
    while len(list(tmp_path.glob("begun.*"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    before = checksums([tmp_path / "runs/toy/subwords"])
    third = start(tmp_path, env, "prepare", VOCAB_SIZE="90", SYSTEM="lstm", SEEDS="1")
    output = third.communicate(timeout=300)[0]
    assert third.returncode == 2
    for process in (first, second):
        assert f"generate.sh (process {process.pid} on" in output
    assert "runs/toy/.done/.lock: locked by " in output
    assert checksums([tmp_path / "runs/toy/subwords"]) == before
    (tmp_path / "go").touch()
    assert (first.wait(30), second.wait(30)) == (0, 0)
    for averaged in (tmp_path / "runs").rglob("averaged.pt"):  # which need the present subwords
        averaged.unlink()
    assert start(tmp_path, env, "prepare", VOCAB_SIZE="90").wait(300) == 0
    assert checksums([tmp_path / "runs/toy/subwords"]) != before


def test_a_preparation_waits_for_another(tmp_path, env):
    """Jobs that are started together on one preparation."""
    (tmp_path / "data-prep").mkdir()
    for name in ("fetch", "clean", "subwords", "binarise"):
        (tmp_path / f"data-prep/{name}.py").touch()
    lock = tmp_path / "runs/toy/.done/prepare.lock"
    with file_lock(lock, "the first"), file_lock(tmp_path / "runs/toy" / DATA_LOCK, "a step"):
        told, waiting = (start(tmp_path, env, "prepare", SYSTEM=s) for s in ("lstm", "convs2s"))
        message = f"[toy] waiting: {lock}: locked by the first (process {os.getpid()} on"
        for process in (told, waiting):
            assert process.stdout.readline().startswith(message)
        time.sleep(2 * PATIENCE)
        assert (told.poll(), waiting.poll()) == (None, None)
        told.terminate()
        assert told.wait(30) == 85
    output = waiting.communicate(timeout=60)[0]
    assert waiting.returncode == 0 and "waiting" not in output, output
