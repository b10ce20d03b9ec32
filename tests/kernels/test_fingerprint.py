"""What a fingerprint sees of a function's source."""

import ast
import importlib.util
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_commands import REPO

from transformer_plugin.kernels import fingerprint, registry
from transformer_plugin.kernels.fingerprint import changed_since, closure, structure
from transformer_plugin.kernels.registry import REGISTRY

PLAIN = '''
def f(x, name):
    """A docstring."""
    y = x + 1  # a comment
    if y:
        return f"{name!r:>{x}} and {y + 1}"
    return "text"
'''
SAME = """
def f(
    x, name
):
    "Another docstring"

    y = (
        x
        + 1
    )
    if y:

        return f"{name!r:>{x}} and {y + 1}"  # why
    return "text"
"""
OTHER = {
    "number": ("x + 1", "x + 2"),
    "operator": ("x + 1", "x - 1"),
    "text": ('"text"', '"other"'),
    "f-string": ("{y + 1}", "{y + 2}"),
    "indentation": ('    return "text"', '        return "text"'),
}


def test_layout_comments_and_docstrings_do_not_count():
    assert structure(ast.parse(SAME)) == structure(ast.parse(PLAIN))


@pytest.mark.parametrize("name", OTHER)
def test_everything_else_counts(name):
    assert structure(ast.parse(PLAIN.replace(*OTHER[name]))) != structure(ast.parse(PLAIN))


EQUATION = """
import functools

NUMBERS = {"scale": (1, [2])}

def half(x):
    return x / 2

TABLE = {"half": half}

def twice(function):
    return functools.wraps(function)(lambda x: 2 * function(x))

@twice
def equation(x, find=half, **options: "half"):
    return TABLE["half"](x) * NUMBERS["scale"][0] + find(x)
"""
EDITS = {
    "a decorator": ("2 * function(x)", "3 * function(x)", "twice"),
    "a default, and what a table holds": ("x / 2", "x / 3", "half"),
    "a number in containers": ("[2]", "[3]", "NUMBERS"),
    "an entry": ('"half": half', '"half": 2 and half, "other": 2', "TABLE"),
}


@pytest.fixture
def fingerprint_of(tmp_path, monkeypatch):
    """fingerprint_of(source) is the closure of ``equation`` in a module with that source."""
    monkeypatch.setattr(fingerprint, "_PLAIN", "equations_")

    def of(source, encoding="utf-8"):
        name = f"equations_{abs(hash((source, encoding)))}"
        path = tmp_path / f"{name}.py"
        path.write_text(source, encoding=encoding)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return {key.split(": ")[1]: value for key, value in closure([module.equation]).items()}

    return of


@pytest.mark.parametrize("name", EDITS)
def test_what_an_equation_names_counts(fingerprint_of, name):
    old, new, changed = EDITS[name]
    before, after = fingerprint_of(EQUATION), fingerprint_of(EQUATION.replace(old, new))
    assert before.keys() == after.keys() == {"equation", "half", "twice", "NUMBERS", "TABLE"}
    assert {key for key in before if before[key] != after[key]} == {changed}


def test_what_an_editor_puts_in_front_does_not_count(fingerprint_of):
    """A byte order mark, or the name of another encoding."""
    source = EQUATION.replace('"half"', '"Hälfte"')
    expected = fingerprint_of(source)
    assert fingerprint_of(source, "utf-8-sig") == expected
    assert fingerprint_of(f"# coding: latin-1\n{source}", "latin-1") == expected


PYTHONS = {
    *map(str, Path.home().glob(".pyenv/versions/3.1[123].*/bin/python3")),
    *filter(None, (shutil.which(f"python3.{minor}") for minor in (11, 12, 13))),
}
PYTHONS = {
    path
    for path in PYTHONS
    if not subprocess.run([path, "-V"], check=False, capture_output=True).returncode
}


def test_what_is_recorded_is_what_this_python_finds():
    for each in REGISTRY:
        assert changed_since(closure(each.stands_for)) == [], each.name


def test_nothing_is_recorded_where_kernels_are_off(monkeypatch):
    monkeypatch.setattr(registry, "REGISTRY", [])
    monkeypatch.setattr(fingerprint, "record", lambda _: pytest.fail("recorded"))
    with pytest.raises(SystemExit, match="unset TRANSFORMER_PLUGIN_KERNELS"):
        runpy.run_module("transformer_plugin.kernels")


@pytest.mark.skipif(not PYTHONS, reason="there is no other Python on this machine")
@pytest.mark.parametrize("python", sorted(PYTHONS))
def test_every_python_gives_the_same(python, tmp_path):
    """The module is loaded alone: other Pythons on this machine may have no torch."""
    source = (REPO / "transformer_plugin/kernels/fingerprint.py").read_text(encoding="utf-8")
    alone = source.replace("from ..modules.operation import Operation", "Operation = type")
    (tmp_path / "alone.py").write_text(alone, encoding="utf-8")
    (tmp_path / "text.py").write_text(PLAIN, encoding="utf-8")
    code = "import alone; print(alone.structure(alone.ast.parse(open('text.py').read())))"
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(structure(ast.parse(PLAIN)))
