"""recipes/lib.sh: stages are skipped only when nothing changed, failures leave no half output."""

from __future__ import annotations

import json
import subprocess

import pytest
from recipe_environment import REPO, environment


@pytest.fixture
def shell(tmp_path):
    """shell(script, NAME=VALUE) runs a script that has sourced lib.sh, in RUN_DIR."""
    (tmp_path / "run").mkdir()

    def run(script: str, folder: str = "run", **variables):
        text = (
            f"set -euo pipefail\n. {REPO}/recipes/lib.sh\nEXPERIMENT=x\n"
            f'RUN_DIR={tmp_path}/{folder} DATA_DIR=$RUN_DIR\ncd "$RUN_DIR"\n{script}\n'
        )
        return subprocess.run(
            ["bash", "-c", text, "verb.sh"],
            capture_output=True,
            text=True,
            env=environment(**variables),
        )

    return run


COPY = """stage copy --output out.txt --input in.txt -- \\
    bash -c 'echo ran >> calls; cp in.txt out.txt'
perform"""


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
    (run / "out.txt").write_text("changed by hand")
    assert [count(), count()] == [4, 4]
    assert count(COPY.replace("cp in", "cp -f in")) == 5
    (run / ".done/copy.json").unlink()
    assert count() == 6
    assert (run / "out.txt").read_text() == "two"
    entries = json.loads((run / "manifest.json").read_text())["stages"]["copy"]
    assert "cp in.txt out.txt" in entries[0]["commands"][0] and entries[0]["status"] == 0


def test_a_run_that_has_moved_is_still_done(shell, tmp_path):
    paths = '"$RUN_DIR/in" "$RUN_DIR/out"'
    script = f'stage copy --output "$RUN_DIR/out" --input "$RUN_DIR/in" -- cp {paths}\nperform'
    (tmp_path / "run/in").write_text("one")
    assert "already done" not in shell(script).stderr
    (tmp_path / "run").rename(tmp_path / "moved")
    assert "copy: already done" in shell(script, "moved").stderr


def test_a_missing_input_stops_the_stage(shell, tmp_path):
    result = shell(COPY)
    assert result.returncode == 2 and "verb.sh: in.txt is missing" in result.stderr
    assert not (tmp_path / "run/calls").exists()


def test_a_failing_command_stops_the_stages_and_is_not_done(shell, tmp_path):
    result = shell("stage bad --output out.txt -- false\nstage next -- touch next\nperform")
    assert result.returncode == 1 and "bad failed with status 1\n" in result.stderr
    assert not (tmp_path / "run/.done/bad.json").exists() and not (tmp_path / "run/next").exists()


def test_a_command_that_writes_nothing_is_not_done(shell, tmp_path):
    result = shell("stage idle --output out.txt -- true\nperform")
    assert result.returncode == 2 and "out.txt does not exist" in result.stderr
    assert not (tmp_path / "run/.done/idle.json").exists()


@pytest.mark.parametrize("script, message", [
    ("stage x -- nothing-of-that-name", "nothing-of-that-name: No such file or directory"),
    ("stage x --output y", "stage x: no command after --"),
])  # fmt: skip
def test_a_wrong_command_is_named(shell, script, message):
    result = shell(f"{script}\nperform")
    assert result.returncode == 2 and result.stderr.splitlines()[-1] == f"verb.sh: {message}"


def test_a_dry_run_prints_commands_that_can_be_pasted(shell, tmp_path):
    script = """stage both --env "N=1 2" -- bash -c 'echo $N "$1"' x "c'd"
stage both --log x.log -- echo hi
stage both --stdout y.txt --output y.txt --input missing.txt -- echo
perform"""
    result = shell(script, DRY_RUN="1")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in (tmp_path / "run").iterdir()] == []
    first, *others = result.stdout.splitlines()
    pasted = subprocess.run(["bash", "-c", first], capture_output=True, text=True)
    assert pasted.stdout == "1 2 c'd\n"
    assert others == ["echo hi 2>&1 | tee x.log", "echo > y.txt"]


def test_a_log_has_both_streams_and_the_screen_the_last_line_of_a_failure(shell, tmp_path):
    script = "stage x --log logs/x.log -- bash -c 'echo out; echo err >&2; exit 3'\nperform"
    result = shell(script)
    assert result.returncode == 3 and result.stdout == ""
    assert result.stderr.splitlines()[-1] == ("[x] x failed with status 3: err; log: logs/x.log")
    everything = shell(script, VERBOSE="1").stdout
    for text in (everything, (tmp_path / "run/logs/x.log").read_text()):
        assert sorted(text.split()) == ["err", "out"]


def test_a_command_that_resumes_adds_to_its_log(shell, tmp_path):
    script = """stage x --output out --log x.log --resumes -- bash -c 'echo $0; %s' {}\nperform"""
    for number, command in enumerate(["exit 3", "touch out; exit 3", "exit 3", "true"]):
        shell((script % command).format(number))
    assert (tmp_path / "run/x.log").read_text().split() == ["1", "2", "3"]
    entries = json.loads((tmp_path / "run/manifest.json").read_text())["stages"]["x"]
    assert [entry["status"] for entry in entries] == [3, 3, 3, 0]


def test_the_log_is_whole_when_nobody_reads_the_output(shell, tmp_path):
    result = shell("(stage x --log x.log -- bash -c 'for i in {1..99999}; do echo line $i; done'\n"
                   "perform) | head -n 1", VERBOSE="1")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert len((tmp_path / "run/x.log").read_text().splitlines()) == 99_999


def test_standard_output_is_written_whole_or_not_at_all(shell, tmp_path):
    assert shell("stage x --stdout y.txt -- echo whole\nperform").returncode == 0
    result = shell("stage x --stdout y.txt -- bash -c 'echo half; echo why >&2; exit 4'\nperform")
    assert result.returncode == 4 and "why" in result.stderr
    assert (tmp_path / "run/y.txt.stderr").read_text() == "why\n"
    assert (tmp_path / "run/y.txt").read_text() == "whole\n"
    assert not list((tmp_path / "run").glob(".*.partial"))


def test_die_names_the_verb(shell):
    result = shell("die 'what to do'")
    assert (result.returncode, result.stderr) == (2, "verb.sh: what to do\n")


def test_begin_takes_the_experiment_the_dry_run_and_the_rest(shell):
    result = shell(
        'begin toy --dry-run --max-epoch 3; echo "$EXPERIMENT $CORPUS $DRY_RUN" "${EXTRA[*]}"'
    )
    assert result.stdout == "toy toy 1 --max-epoch 3\n", result.stderr


def test_a_number_that_the_experiment_lacks_is_named(shell):
    script = "EXPERIMENT=mine; ARCH=vaswani_tiny; MAX_TOKENS=; needs ARCH MAX_TOKENS; echo on"
    refused = shell(script)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "recipes/experiments/mine.sh does not set MAX_TOKENS; toy.sh beside" in refused.stderr
    assert shell(script.replace("MAX_TOKENS=", "MAX_TOKENS=9", 1)).stdout == "on\n"


def test_logs_are_utf8_whatever_the_locale(shell):
    command = "stage x -- python3 -c 'import sys; print(sys.flags.utf8_mode)'\nperform"
    assert shell(command, PYTHONUTF8="0").stdout.split() == ["1"]


def test_commands_of_a_recipe_run_in_forks(shell):
    """Without forks the suite takes about a quarter longer."""
    command = "stage x -- python3 -c 'import torch, sys; print(\"sacrebleu\" in sys.modules)'\n"
    assert shell(f"{command}perform").stdout.split() == ["True"]
