"""What a fingerprint sees of a function's source."""

import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_commands import REPO

from transformer_plugin.kernels.fingerprint import tokens

PLAIN = '''
def f(x, name):
    """A docstring."""
    y = x + 1  # a comment
    if y:
        return f"{name!r:>{x}} and {y + 1}"
    return "text"
'''
SAME = '''
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
'''.replace("(\n        x\n        + 1\n    )", "x + 1")
OTHER = {
    "number": ("x + 1", "x + 2"),
    "operator": ("x + 1", "x - 1"),
    "text": ('"text"', '"other"'),
    "f-string": ("{y + 1}", "{y + 2}"),
    "indentation": ('    return "text"', '        return "text"'),
}


def test_layout_comments_and_docstrings_do_not_count():
    assert list(tokens(SAME)) == list(tokens(PLAIN))


@pytest.mark.parametrize("name", OTHER)
def test_everything_else_counts(name):
    assert list(tokens(PLAIN.replace(*OTHER[name]))) != list(tokens(PLAIN))


PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.1[123].*/bin/python3"))


@pytest.mark.parametrize("python", [sys.executable, *map(str, PYTHONS)])
def test_every_python_gives_the_same(python, tmp_path):
    """The module is loaded alone: other Pythons on this machine may have no torch."""
    source = (REPO / "transformer_plugin/kernels/fingerprint.py").read_text(encoding="utf-8")
    alone = source.replace("from ..modules.operation import Operation", "Operation = type")
    (tmp_path / "alone.py").write_text(alone, encoding="utf-8")
    (tmp_path / "text.py").write_text(PLAIN, encoding="utf-8")
    code = "import alone; print(list(alone.tokens(open('text.py').read())))"
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(list(tokens(PLAIN)))
