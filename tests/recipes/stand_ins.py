"""Programs in place of fairseq's and torch's, and the recipes that call them."""

import shutil
import sys

from recipe_environment import REPO, environment

# Answers what recipes/ ask torch, how many GPUs there are; runs everything else.
PYTHON = f'case "$*" in *device_count*) echo 0 ;; *) exec {sys.executable} "$@" ;; esac'


def recipes(folder, **programs):
    """A copy of recipes/ in `folder`, whose lock is patient for half a second, and the environment
    in which they call `programs`, shell scripts by name (_ for -)."""
    shutil.copytree(REPO / "recipes", folder / "recipes")
    lock = folder / "recipes/run_lock.py"
    text = lock.read_text().replace("PATIENCE = 10 ", "PATIENCE = 0.5 ")
    assert text != lock.read_text()
    lock.write_text(text)
    (folder / "bin").mkdir()
    for name, script in (programs | {"python3": PYTHON}).items():
        program = folder / "bin" / name.replace("_", "-")
        program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        program.chmod(0o755)
    data = folder / "runs/toy/data-bin"
    data.mkdir(parents=True)
    (data / "dict.en.txt").write_text("word 1\n")
    found = environment(RUNS=str(folder / "runs"), HERE=str(folder))
    return found | {"PATH": f"{folder / 'bin'}:{found['PATH']}"}

