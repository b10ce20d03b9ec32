"""Figures of speed and memory: the page for users takes them from the log of experiments."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FIGURE = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])")


def figures(page):
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return {
        figure for line in lines if not line.startswith("    ") for figure in FIGURE.findall(line)
    }


def test_each_figure_for_users_stands_in_the_log():
    for_users = figures("performance.md")
    assert len(for_users) > 20
    assert for_users <= figures("experiments.md")
