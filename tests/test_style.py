"""Lint, types, the direction of imports, and the promises of the README."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
PACKAGE = REPO / "transformer_plugin"
BIN = Path(sys.executable).parent
TORCH = {"modules", "search", "kernels"}  # the parts that need torch

# What each part of the package may import (DESIGN: dependencies point one way). A part is a folder,
# or "adapters": the files at the top, which register the components with fairseq. "files" are those
# at the top that need Python's library alone, and filelock.
ALLOWED = {
    "modules": {"modules"},
    "search": {"modules", "search"},
    "kernels": {"modules", "search", "files", "kernels"},
    "files": {"files"},
    "adapters": {"modules", "search", "files", "adapters"},
    "checkpoints": {"adapters", "modules", "files", "checkpoints"},
    "training": {"adapters", "modules", "files", "checkpoints", "training"},
    "translation": {"adapters", "modules", "files", "checkpoints", "translation"},
    "scoring": {"files", "scoring"},
    "reports": {"adapters", "files", "checkpoints", "scoring", "translation", "reports"},
    "runs": {"adapters", "files", "reports", "runs"},
    "parsing": {"files", "scoring", "translation", "parsing"},
    "doctor": {"files", "adapters", "modules", "kernels", "checkpoints", "doctor"},
}
# Files that bring the parts together: the package itself, and the command.
ABOVE_ALL = {"__init__.py", "__main__.py", "cli.py"}
FILES = {"files.py", "lock.py", "prepared_data.py", "processor.py", "single_page.py",
         "text_lines.py", "text_streams.py"}  # fmt: skip


def tracked(*patterns):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    return [REPO / name for name in listed.stdout.splitlines() if (REPO / name).is_file()]


def check(*command):
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff():
    check(BIN / "ruff", "check", ".")


def test_shellcheck():
    scripts = [*tracked("*.sh"), REPO / ".ci/run"]
    check(BIN / "shellcheck", "-x", *scripts)


def test_types():
    check(BIN / "mypy", PACKAGE)


def imports(path):
    """Files of the package that a file imports, lazily too, and the names of other packages.
    What is imported for the type checker alone does not count."""
    files, others = set(), set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for place in (folder, *(folder / alias.name for alias in node.names)):
                module = place.with_suffix(".py")
                files.update({module, place / "__init__.py"} if place != folder else {module})
        elif isinstance(node, ast.ImportFrom):
            others.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Import):
            others.update(alias.name.split(".")[0] for alias in node.names)
    return {file for file in files if file.exists()}, others


def part(path):
    """The part of the package that a file belongs to; None for those above all."""
    first, *rest = path.relative_to(PACKAGE).parts
    if rest:
        return first
    if first in FILES:
        return "files"
    return None if first in ABOVE_ALL else "adapters"


def test_every_part_is_known():
    folders = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert folders | {"adapters", "files"} == set(ALLOWED)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.name))
def test_imports_point_one_way(path):
    files, others = imports(path)
    assert not others & {"tests", "bench", "transformer_plugin"}
    if part(path) is None:
        return
    found = {part(file) for file in files}
    if path == PACKAGE / "components.py":
        found -= {"kernels"}  # where that folder is there
    assert found <= ALLOWED[part(path)], f"{path} imports {found - ALLOWED[part(path)]}"
    if part(path) in {"modules", "search", "kernels"}:
        assert "fairseq" not in others


def test_imports_make_no_circle():
    graph = {path: imports(path)[0] - {path} for path in PACKAGE.rglob("*.py")}
    tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize("module", ["", ".modules", ".search", ".kernels", ".cli", ".scoring"])
def test_it_is_imported_without_fairseq(module):
    heavy = {"fairseq", "hydra", "omegaconf"} | (set() if module[1:] in TORCH else {"torch"})
    check = f"import sys, transformer_plugin{module}; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("folder", ["modules", "search"])
def test_the_paper_needs_torch_alone(folder):
    files = [f"transformer_plugin.{folder}.{path.stem}" for path in PACKAGE.glob(f"{folder}/*.py")]
    code = (
        "import importlib, sys, torch, torch.utils.checkpoint; before = set(sys.modules)\n"
        f"for name in {files}: importlib.import_module(name)\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - sys.stdlib_module_names <= {"transformer_plugin", "torch"}


def test_no_file_has_a_name_that_says_nothing():
    for path in tracked("*.py", "*.sh"):
        assert path.stem not in {"util", "utils", "helper", "helpers", "common", "misc", "base"}
    assert not {p.name for p in PACKAGE.iterdir()} & {"models", "tasks"}


def test_files_are_short():
    for path in tracked("*.py", "*.cpp", "*.h", "*.sh", "*.js"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 250, path


def test_readme_is_short_and_its_paths_exist():
    text = (REPO / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for path in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (REPO / path).exists(), path
    for path in re.findall(r"\b(recipes/\w+\.sh)\b", text):
        assert (REPO / path).exists(), path
