"""A figure stands in one place; speed and memory also on the page for users."""

import re

from pages import PAGES, REPO

FIGURE = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])")


def figures(page):
    lines = (REPO / "docs" / page).read_text(encoding="utf-8").splitlines()
    return {
        figure for line in lines if not line.startswith("    ") for figure in FIGURE.findall(line)
    }


def test_each_figure_for_users_stands_in_the_log():
    for_users = figures("performance.md")
    assert len(for_users) > 20
    assert for_users <= figures("experiments.md")


def test_a_score_stands_on_one_page():
    """Others link to it: of two, one is soon out of date."""
    pages: dict[str, set[str]] = {}
    for page in PAGES:
        for figure in re.findall(r"(?<![\w.,])\d\d\.\d\d(?![\w.])", page.read_text("utf-8")):
            pages.setdefault(figure, set()).add(page.name)
    assert {figure: names for figure, names in pages.items() if len(names) > 1} == {}
