"""README.md and docs/ lead to pages and files that are there."""

import re

import pytest
from pages import PAGES, REPO, files_to_write

WRITTEN = {path for page in PAGES for path in files_to_write(page)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages(page):
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_repository_that_are_named_exist(page):
    parts = r"(?:transformer_plugin|data-prep|recipes|bench|tests|docs|examples)"
    for path in re.findall(rf"`({parts}/[\w./-]+)`", page.read_text(encoding="utf-8")):
        assert (REPO / path).exists() or path in WRITTEN, path
