"""A run that was made with other equations is not taken for one with those of today."""

import shutil
import subprocess

import pytest
from recipe_environment import REPO, environment

TOOL = """#!/bin/sh
echo ran >> {log}
mkdir -p {run}/checkpoints
touch {run}/checkpoints/checkpoint_last.pt {run}/checkpoints/averaged.pt
printf "S-0\\ta\\nH-0\\t-1.0\\tb\\nD-0\\t-1.0\\tb\\n"
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the code, a prepared run, and tools that do nothing."""
    for folder in ("recipes", "transformer_plugin"):
        shutil.copytree(REPO / folder, tmp_path / folder)
    run = tmp_path / "runs/toy"
    (run / "data-bin").mkdir(parents=True)
    (run / "data-bin/dict.en.txt").write_text("word 1\n")
    for name in ("fairseq-train", "fairseq-generate"):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(TOOL.format(log=tmp_path / f"{name}.runs", run=run))
        tool.chmod(0o755)
    return tmp_path


def recipe(copy, verb):
    """What it says, and how often its tool has run by now."""
    env = environment(RUNS=str(copy / "runs"))
    done = subprocess.run(
        [copy / f"recipes/{verb}.sh", "toy"],
        env=env | {"PATH": f"{copy / 'bin'}:{env['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr, (copy / f"fairseq-{verb}.runs").read_text().count("ran")


@pytest.mark.parametrize(
    "verb, file",
    [
        ("train", "modules/attention_score.py"),
        ("generate", "modules/length_penalty.py"),
        ("generate", "search/beam_search.py"),
    ],
)
def test_a_stage_runs_again_after_an_edit(copy, verb, file):
    recipe(copy, "train")
    _said, first = recipe(copy, verb)
    (copy / "transformer_plugin" / file.replace(".py", ".pyc")).touch()
    said, runs = recipe(copy, verb)
    assert f"{verb}: already done" in said and runs == first
    with (copy / "transformer_plugin" / file).open("a") as source:
        source.write("EDITED = True\n")
    said, runs = recipe(copy, verb)
    assert "already done" not in said.split("hypotheses")[0] and runs == first + 1
    assert (f"train: {file} changed since it was done" in said) == (verb == "train")
