"""Programs in place of fairseq's and torch's, and the recipes that call them."""

import shutil

from recipe_environment import BIN, REPO, environment

# The recipes' own part of the command is the real one, but for a slow question: the number of GPUs.
PLUGIN = f"""
case "$1 ${{2:-}}" in
    "recipe gpus") echo "${{FAKE_GPUS:-0 fp32 0}}"; exit ;;
    "recipe "*) exec {BIN / "transformer-plugin"} "$@" ;;
esac
"""


def recipes(folder, **programs):
    """A copy of recipes/ and the equations in `folder`, and the environment in which they call
    `programs`, shell scripts by name (_ for -)."""
    for code in ("recipes", "transformer_plugin/modules", "transformer_plugin/search"):
        shutil.copytree(REPO / code, folder / code)
    programs["transformer_plugin"] = PLUGIN + programs.get("transformer_plugin", "exit 3")
    (folder / "bin").mkdir()
    for name, script in programs.items():
        program = folder / "bin" / name.replace("_", "-")
        program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        program.chmod(0o755)
    data = folder / "runs/toy/data-bin"
    data.mkdir(parents=True)
    (data / "dict.en.txt").write_text("word 1\n")
    found = environment(RUNS=str(folder / "runs"), HERE=str(folder))
    return found | {"PATH": f"{folder / 'bin'}:{found['PATH']}"}
