"""recipes/lib.sh: stages are skipped only when nothing changed, failures leave no half output."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

LIB = Path(__file__).resolve().parents[2] / "recipes" / "lib.sh"


@pytest.fixture
def shell(tmp_path):
    """shell(script, NAME=VALUE) runs a script that has sourced lib.sh, in RUN_DIR."""
    (tmp_path / "run").mkdir()

    def run(script: str, **environment):
        text = f'set -euo pipefail\n. {LIB}\nRUN_DIR={tmp_path}/run\ncd "$RUN_DIR"\n{script}\n'
        return subprocess.run(["bash", "-c", text, "verb.sh"], capture_output=True, text=True,
                              env={**os.environ, **environment})

    return run


COPY = "stage copy out.txt in.txt -- bash -c 'echo ran >> calls; cp in.txt out.txt'"


def test_a_stage_runs_again_only_when_something_changed(shell, tmp_path):
    run = tmp_path / "run"
    calls = run / "calls"

    def count(script=COPY):
        result = shell(script)
        assert result.returncode == 0, result.stderr
        return len(calls.read_text().splitlines())

    (run / "in.txt").write_text("one")
    assert [count(), count()] == [1, 1]
    (run / "in.txt").write_text("two")
    assert [count(), count()] == [2, 2]
    (run / "out.txt").unlink()
    assert [count(), count()] == [3, 3]
    assert count(COPY.replace("cp in", "cp -f in")) == 4
    (run / ".done" / "copy").unlink()
    assert count() == 5
    assert (run / "out.txt").read_text() == "two"


def test_a_function_runs_again_when_its_knobs_change(shell, tmp_path):
    script = ("make() { run bash -c 'echo ran >> calls; echo $0 > out.txt' \"$KNOB\"; }\n"
              "stage make out.txt -- make")
    for knob, calls in (("1", 1), ("1", 1), ("2", 2), ("2", 2)):
        result = shell(script, KNOB=knob)
        assert result.returncode == 0, result.stderr
        assert len((tmp_path / "run/calls").read_text().splitlines()) == calls
    assert (tmp_path / "run/out.txt").read_text() == "2\n"


def test_a_missing_input_stops_the_stage(shell, tmp_path):
    result = shell(COPY + "\necho went on")
    assert result.returncode == 2 and "in.txt is missing" in result.stderr
    assert "went on" not in result.stdout and not (tmp_path / "run/calls").exists()


def test_a_failing_command_stops_the_script_and_is_not_done(shell, tmp_path):
    result = shell("stage bad out.txt -- false\necho went on")
    assert result.returncode == 1 and "went on" not in result.stdout
    assert not (tmp_path / "run/.done/bad").exists()


def test_a_command_that_writes_nothing_is_not_done(shell, tmp_path):
    result = shell("stage idle out.txt -- true")
    assert result.returncode == 2 and "out.txt does not exist" in result.stderr
    assert not (tmp_path / "run/.done/idle").exists()


def test_a_dry_run_prints_commands_that_can_be_pasted(shell, tmp_path):
    (tmp_path / "run/in.txt").write_text("x")
    script = ("both() { run echo 'a  b' \"c'd\"; logged x.log echo hi; capture y.txt echo; }\n"
              "stage both y.txt in.txt missing.txt -- both")
    result = shell(script, DRY_RUN="1")
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "run/y.txt").exists() and not (tmp_path / "run/x.log").exists()
    pasted = subprocess.run(["bash", "-c", result.stdout.splitlines()[0]], capture_output=True,
                            text=True)
    assert pasted.stdout == "a  b c'd\n"
    assert result.stdout.splitlines()[1] == "echo hi 2>&1 | tee x.log"


def test_logged_keeps_both_streams_and_the_exit_status(shell, tmp_path):
    result = shell("logged logs/x.log bash -c 'echo out; echo err >&2; exit 3'\necho went on")
    assert result.returncode == 3 and "went on" not in result.stdout
    assert sorted((tmp_path / "run/logs/x.log").read_text().split()) == ["err", "out"]


def test_capture_writes_the_whole_output_or_none(shell, tmp_path):
    assert shell("capture y.txt echo whole").returncode == 0
    result = shell("capture y.txt bash -c 'echo half; echo why >&2; exit 4'")
    assert result.returncode != 0 and "why" in result.stderr
    assert (tmp_path / "run/y.txt.stderr").read_text() == "why\n"
    assert (tmp_path / "run/y.txt").read_text() == "whole\n"
    assert not list((tmp_path / "run").glob("*.partial"))


def test_die_names_the_verb(shell):
    result = shell("die 'what to do'")
    assert (result.returncode, result.stderr) == (2, "verb.sh: what to do\n")


def test_begin_takes_the_experiment_the_dry_run_and_the_rest(shell):
    result = shell('begin toy --dry-run --max-epoch 3; echo "$EXPERIMENT $CORPUS $DRY_RUN" '
                   '"${EXTRA[*]}"')
    assert result.stdout == "toy toy 1 --max-epoch 3\n", result.stderr


def test_a_number_that_the_experiment_lacks_is_named(shell):
    script = "EXPERIMENT=mine; ARCH=vaswani_tiny; MAX_TOKENS=; needs ARCH MAX_TOKENS; echo on"
    refused = shell(script)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "recipes/experiments/mine.sh does not set MAX_TOKENS; toy.sh beside" in refused.stderr
    assert shell(script.replace("MAX_TOKENS=", "MAX_TOKENS=9", 1)).stdout == "on\n"
