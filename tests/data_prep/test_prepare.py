"""recipes/prepare.sh: raw text to data-bin, twice; and the dry run that touches nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from corpus_files import files_of, leftovers

STEPS = ["fetch", "clean", "subwords", "binarise"]


def test_the_toy_experiment_twice(prepare, tmp_path):
    first = prepare("toy")
    assert first.returncode == 0, first.stderr
    run = tmp_path / "runs" / "toy"
    assert {path.name for path in run.iterdir()} == {
        ".done",
        "raw",
        "clean",
        "subwords",
        "data-bin",
        "manifest.json",
        ".lock",
    }

    def times():
        return {path: path.stat().st_mtime_ns for path in run.rglob("*") if "lock" not in path.name}

    before = times()
    second = prepare("toy")
    assert second.stderr.count("already done") == 4
    assert times() == before
    assert not leftovers(run)

    data = files_of(run / "data-bin")
    with (run / "clean" / "valid.de").open("a", encoding="utf-8") as file:
        file.write("Ein Satz zu viel.\n")
    third = prepare("toy")
    assert third.returncode == 0, third.stderr
    assert "[raw] already done" in third.stderr and "[clean] written" in third.stderr
    assert files_of(run / "data-bin") == data, "the same input gives the same bytes"


def test_the_dry_run_prints_the_four_commands_and_writes_nothing(prepare, tmp_path):
    result = prepare("multi30k_en_de", "--dry-run", "--min-length", "2")
    assert result.returncode == 0, result.stderr
    commands = [shlex.split(line) for line in result.stdout.splitlines()]
    assert [Path(command[1]).stem for command in commands] == STEPS
    assert commands[1][commands[1].index("--min-length") + 1] == "2"
    assert all(command[-4:] == ["--source", "en", "--target", "de"] for command in commands)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_experiment_lists_the_known_ones(prepare):
    result = prepare("toyy")
    assert result.returncode == 2
    assert "'toyy'" in result.stderr and "multi30k_en_de" in result.stderr


def test_no_experiment_shows_the_usage(prepare):
    result = prepare()
    assert result.returncode == 2 and "usage:" in result.stderr


def test_a_failing_step_stops_the_rest(prepare, tmp_path):
    result = prepare("multi30k_en_fr", DATA_MIRROR=str(tmp_path / "nowhere"))
    assert result.returncode == 2
    assert "train.en.gz" in result.stderr and "clean" not in result.stderr


@pytest.mark.slow
def test_a_preparation_that_is_done_needs_no_lock(prepare, tmp_path):
    """It may lie where nothing can be written."""
    assert prepare("toy", VOCAB_SIZE="500").returncode == 0
    done = tmp_path / "runs/toy/.done"
    for name in ("raw", "clean", "subwords", "data-bin"):
        (done / f"{name}.lock").unlink()
        (done / f"{name}.lock").mkdir()  # cannot be opened, not even by root
    other = prepare("toy", VOCAB_SIZE="500", DATA_DIR=str(tmp_path / "runs/toy"), RUNS="elsewhere")
    assert other.returncode == 0 and other.stderr.count("already done") == 4, other.stderr
    assert prepare("toy", VOCAB_SIZE="400").returncode == 2
