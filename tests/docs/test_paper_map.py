"""docs/paper-map.md names only what exists, and leaves nothing without code and test."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs/paper-map.md").read_text(encoding="utf-8")
SECTIONS = ["3.1", "3.2", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "5.4", "6.1", "6.2"]
MENTIONED = [
    *("Figure 1", "equation (1)", "equation (2)", "equation (3)"),
    *("Table 1", "Table 2", "Table 3", "Table 4"),
    *("3.2.1", "3.2.2", "3.2.3"),
]


def places(cell):
    """FILE:NAME of each link [`PATH:NAME`](../FILE) in a cell; PATH is FILE or its end."""
    found = []
    for label, file in re.findall(r"\[`([^`]+)`\]\(\.\./([^)]+)\)", cell):
        path, colon, name = label.rpartition(":")
        if file.startswith("tests/"):
            assert not colon, label
        else:
            assert file.endswith(path if colon else label), (label, file)
        found.append(f"{file}:{name}" if colon or file.startswith("tests/") else file)
    assert len(found) == cell.count("`") // 2, cell  # a name that is no link
    return found


def rows():
    """(section, what the paper says, places of code, places of tests) of each row of a table."""
    section = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[-1] != "shown by":
            assert len(cells) == 3, line
            yield section, cells[0], *map(places, cells[1:])


ROWS = list(rows())


@cache
def names(path):
    """What a Python file defines, methods and fields as Class.name."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        found |= defined(node)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{name}" for part in node.body for name in defined(part)}
    return found


def defined(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.AnnAssign):
        return {node.target.id}
    if isinstance(node, ast.Assign):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    return set()


def exists(place):
    """Whether FILE, FILE.py:NAME or FILE.sh:KNOB is there."""
    file, _, name = place.partition(":")
    path = REPO / file
    if not path.is_file():
        return False
    if path.suffix == ".sh" and name:
        return f'"${{{name}:=' in path.read_text(encoding="utf-8")
    return not name or name in names(path)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0].split()[0]}-{row[1][:30]}")
def test_each_row_names_code_and_tests_that_exist(row):
    _, _, code, tests = row
    assert code and tests
    for place in code:
        assert exists(place), place
        assert not place.startswith("tests/")
    for place in tests:
        assert exists(place), place
        assert re.fullmatch(r"tests/\S+\.py:test_\w+", place)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_of_the_paper_has_its_table(section):
    assert any(title.split()[0] == section for title, *_ in ROWS)


@pytest.mark.parametrize("thing", MENTIONED)
def test_each_equation_and_table_is_mentioned(thing):
    assert thing in PAGE


def test_every_equation_and_section_that_the_code_claims_has_a_row():
    """A file of modules/ that is a section of the paper is in the page."""
    mapped = {place.partition(":")[0] for _, _, code, _ in ROWS for place in code}
    for path in (REPO / "transformer_plugin/modules").glob("*.py"):
        heading = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if "of the paper" in heading:
            assert str(path.relative_to(REPO)) in mapped, path


@pytest.mark.parametrize(
    "place, there",
    [
        ("transformer_plugin/modules/schedule.py:learning_rate", True),
        ("transformer_plugin/noam.py:NoamSchedule.step_update", True),
        ("transformer_plugin/noam.py:step_update", False),
        ("transformer_plugin/none.py:learning_rate", False),
        ("recipes/lib.sh:BEAM", True),
        ("recipes/lib.sh:NOTHING", False),
        ("tests/test_noam.py:test_equation_9", False),
    ],
)
def test_the_check_itself(place, there):
    assert exists(place) == there
