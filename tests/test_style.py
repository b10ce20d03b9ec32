"""Lint, types, the direction of imports, and the promises of the README."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
PACKAGE = REPO / "transformer_plugin"
BIN = Path(sys.executable).parent

# What each part of the package may import of it (DESIGN: dependencies point one way).
ALLOWED = {
    "modules": {"modules"},
    "search": {"modules", "search"},
    "kernels": {"modules", "search", "kernels"},
    "config": {"modules"},
    "fidelity": set(),
    "departures": {"analysis", "config", "presets"},
    "encoder": {"modules"},
    "decoder": {"modules", "search"},
    "state_names": set(),
    "model": {"modules", "config", "encoder", "decoder", "state_names"},
    "presets": {"config", "fidelity", "precision"},
    "throughput": {"analysis", "model"},
    "criterion": {"modules", "throughput"},
    "generator": {"modules", "search", "model"},
    "noam": set(),
    "adam": {"modules"},
}
FORBIDDEN = {"cli", "tests", "bench"}


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
    check(BIN / "mypy", *(PACKAGE / part for part in ("modules", "search", "kernels")))


def imported_parts(path):
    """Parts of the package that a file imports, and the other top-level packages."""
    parts, others = set(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            place = folder.relative_to(PACKAGE).parts + tuple((node.module or "").split("."))
            names = [p for p in place if p] or [alias.name for alias in node.names]
            parts.add(names[0])
        elif isinstance(node, ast.ImportFrom):
            others.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Import):
            others.update(alias.name.split(".")[0] for alias in node.names)
    return parts, others


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.name))
def test_imports_point_one_way(path):
    parts, others = imported_parts(path)
    place = path.relative_to(PACKAGE).with_suffix("").parts[0]
    assert not parts & FORBIDDEN and not others & FORBIDDEN
    if place in ALLOWED:
        assert parts <= ALLOWED[place], f"{path} imports {parts - ALLOWED[place]}"
    if place in {"modules", "search", "kernels"}:
        assert "fairseq" not in others
    if place != "__init__":
        assert "transformer_plugin" not in others or place == "cli"


def test_no_file_has_a_name_that_says_nothing():
    for path in tracked("*.py", "*.sh"):
        assert path.stem not in {"util", "utils", "helper", "helpers", "common", "misc", "base"}
    assert not {p.name for p in PACKAGE.iterdir()} & {"models", "tasks"}


def test_no_file_has_two_ideas():
    for path in tracked("transformer_plugin/*.py", "data-prep/*.py", "bench/*.py", "recipes/*.sh"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 250, path


def test_readme_is_short_and_its_paths_exist():
    text = (REPO / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for path in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (REPO / path).exists(), path
    for path in re.findall(r"\b(recipes/\w+\.sh)\b", text):
        assert (REPO / path).exists(), path
