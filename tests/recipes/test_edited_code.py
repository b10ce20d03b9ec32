"""A run that was made with other equations is not taken for one with those of today."""

import subprocess

import pytest
from fake_programs import recipes
from recipe_environment import BIN

TOOL = r"""
echo ran >> "$HERE/$(basename "$0").runs"
mkdir -p "$RUNS/toy/checkpoints"
touch "$RUNS"/toy/checkpoints/{checkpoint_last,averaged}.pt
printf 'S-0\ta\nH-0\t-1.0\tb\nD-0\t-1.0\tb\n'
"""
COMMAND = f'exec {BIN / "transformer-plugin"} "$@"'


@pytest.mark.parametrize(
    "verb, file",
    [
        ("train", "modules/attention.py"),
        ("generate", "modules/length_penalty.py"),
        ("generate", "search/beam_search.py"),
    ],
)
def test_a_stage_runs_again_after_an_edit(tmp_path, verb, file):
    tools = {"fairseq_train": TOOL, "fairseq_generate": TOOL, "transformer_plugin": COMMAND}
    env = recipes(tmp_path, **tools)

    def recipe(verb):
        """What it says, and how often its tool has run by now."""
        command = [tmp_path / f"recipes/{verb}.sh", "toy"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr, (tmp_path / f"fairseq-{verb}.runs").read_text().count("ran")

    recipe("train")
    _said, first = recipe(verb)
    code = tmp_path / "transformer_plugin"
    (code / file.replace(".py", ".pyc")).touch()
    said, runs = recipe(verb)
    assert f"{verb}: already done" in said and runs == first
    with (code / file).open("a") as source:
        source.write("EDITED = True\n")
    said, runs = recipe(verb)
    assert f"{verb}: already done" not in said and runs == first + 1
    assert (f"train: {file} changed since it was started" in said) == (verb == "train")
    # Training had nothing left to do, so the checkpoint is still that of the other equations.
    said, _runs = recipe(verb)
    assert (f"train: {file} changed since it was started" in said) == (verb == "train")
