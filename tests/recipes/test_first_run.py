"""A fresh machine: which Python runs, and what is said where nothing is installed."""

import os
import shutil
import subprocess
import sys

import pytest
from fake_programs import recipes
from recipe_environment import REPO


@pytest.fixture
def clone(tmp_path):
    """A folder with the Makefile and the recipes, and an installed .venv whose programs say where
    they are."""
    for name in ("Makefile", "setup.py", "constraints.txt"):
        shutil.copy(REPO / name, tmp_path)
    shutil.copytree(REPO / "recipes", tmp_path / "recipes")
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name in ("fairseq-train", "transformer-plugin"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} of .venv: $*"\n')
    (programs / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("fairseq-train", "transformer-plugin", "python3"):
        (programs / name).chmod(0o755)
    (programs / "python").symlink_to("python3")
    (tmp_path / ".venv/.installed").touch()
    return tmp_path


def ran(*command, **variables):
    """Its status and output, with the system's programs alone on PATH."""
    done = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_make_demo_runs_in_the_venv_whatever_python_and_environment_are_named(clone):
    (clone / "recipes/run.sh").write_text(
        '#!/bin/sh\necho "$* PYTHON ${PYTHON-unset}, $VIRTUAL_ENV, $(command -v fairseq-train)"\n'
    )
    python = os.path.realpath(sys.executable)
    status, output = ran("make", "-C", clone, "demo", f"PYTHON={python}", VIRTUAL_ENV="/other")
    assert status == 0, output
    assert f"toy PYTHON unset, {clone}/.venv, {clone}/.venv/bin/fairseq-train\n" in output


def test_another_python_than_that_of_the_venv_is_refused(clone):
    other = clone / "python3.99"
    other.write_text("#!/bin/sh\necho Python 3.99.0\n")
    other.chmod(0o755)
    status, output = ran("make", "-C", clone, "install", f"PYTHON={other}")
    assert status == 2 and ", not Python 3.99.0: 'make clean' first" in output


def test_recipes_use_the_venv_whatever_python_make_was_given(clone):
    status, output = ran(clone / "recipes/prepare.sh", "toy", "--dry-run", PYTHON="/bin/false")
    check, run = output.splitlines()
    assert status == 0 and check.startswith("transformer-plugin of .venv: recipe check toy"), output
    assert run.startswith("transformer-plugin of .venv: recipe run") and "--dry-run" in run


@pytest.mark.parametrize("missing, used", [(None, "conda"), ("fairseq-train", ".venv")])
def test_an_active_conda_environment_is_used_if_it_has_the_plugin(clone, missing, used):
    conda = clone / "conda"
    shutil.copytree(clone / ".venv", conda, symlinks=True)
    for program in ("fairseq-train", "transformer-plugin"):
        path = conda / "bin" / program
        path.write_text(path.read_text().replace(".venv", "conda"))
    if missing:
        (conda / "bin" / missing).unlink()
    variables = {"PATH": f"{conda}/bin:/usr/bin:/bin", "CONDA_PREFIX": str(conda)}
    status, output = ran(clone / "recipes/prepare.sh", "toy", "--dry-run", **variables)
    assert status == 0 and output.startswith(f"transformer-plugin of {used}: "), output


@pytest.mark.parametrize("verb", ["run", "prepare", "train", "translate"])
@pytest.mark.parametrize("active", [False, True])
def test_recipes_without_the_plugin_say_how_to_install_it(clone, verb, active):
    shutil.rmtree(clone / ".venv")
    variables = {"VIRTUAL_ENV": "/other"} if active else {}
    status, output = ran(clone / f"recipes/{verb}.sh", "toy", **variables)
    assert status == 2 and len(output.splitlines()) == 1, output
    assert f"on PATH: run 'make install' in {clone}" in output
    assert ("the active environment /other" in output) is active


def usage(tmp_path, **variables):
    """train.sh, when fairseq-train refuses its command line as argparse does."""
    script = (
        'for i in {1..100}; do echo "  [--option$i X]"; done | sed "1s/^/usage: /" >&2\n'
        "echo \"fairseq-train: error: argument --arch/-a: invalid choice: '$ARCH'"
        " (choose from 'lstm', 'vaswani_tiny')\" >&2\nexit ${STATUS:-2}"
    )
    env = recipes(tmp_path, fairseq_train=script) | variables
    return subprocess.run(
        [tmp_path / "recipes/train.sh", "toy"], capture_output=True, text=True, env=env, check=False
    )


def test_a_usage_error_is_a_line_with_its_remedy(tmp_path):
    done = usage(tmp_path, ARCH="lsmt")
    log = tmp_path / "runs/toy/train.log"
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "[toy] train failed with status 2: fairseq-train: error: argument --arch/-a: invalid"
        f" choice: 'lsmt'; did you mean lstm?; log: {log}"
    )
    assert len((tmp_path / "runs/toy/train.log").read_text().splitlines()) == 101


def test_a_failure_before_the_first_checkpoint_promises_nothing(tmp_path):
    done = usage(tmp_path, ARCH="lsmt", STATUS="7")
    assert done.returncode == 7 and "train failed with status 7" in done.stderr
    assert "continues" not in done.stderr


@pytest.mark.parametrize(
    "knobs, flags, none",
    [
        ({"ARCH": "vaswani_table3_d1"}, [], ["--dropout", "--label-smoothing"]),
        ({"ARCH": "vaswani_table3_d3", "DROPOUT": "0.3"}, ["--dropout", "0.3"],
         ["--label-smoothing"]),
        ({"LABEL_SMOOTHING": "0.0"}, ["--label-smoothing", "0.0"], ["--dropout"]),
    ],
)  # fmt: skip
def test_a_presets_numbers_hold_unless_another_is_given(tmp_path, knobs, flags, none):
    env = recipes(tmp_path) | knobs
    words = subprocess.run(
        [tmp_path / "recipes/train.sh", "toy", "--dry-run"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not set(none) & set(words)
    assert not flags or words[words.index(flags[0]) + 1] == flags[1]


def test_gpu_tests_need_neither_network_nor_venv(clone):
    shutil.rmtree(clone / ".venv")
    python = clone / "complete_python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "runs $*"\n')
    python.chmod(0o755)
    status, output = ran("make", "-C", clone, "test-gpu", f"PYTHON={python}")
    assert status == 0 and "runs -m pytest -m gpu" in output, output
    assert not (clone / ".venv").exists()
