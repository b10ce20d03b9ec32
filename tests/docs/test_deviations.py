"""docs/deviations.md and the comments in the code say the same."""

import re
from collections import Counter
from pathlib import Path

import pytest

from transformer_plugin.reports.accounting import account

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs/deviations.md").read_text(encoding="utf-8")


def test_each_line_is_a_comment_where_it_occurs_and_each_comment_a_line():
    listed = Counter(re.findall(r"\| `([\w/]+\.py)` \|$", PAGE, flags=re.MULTILINE))
    package = REPO / "transformer_plugin"
    commented = Counter(
        {
            str(path.relative_to(package)): count
            for path in package.rglob("*.py")
            if (count := path.read_text(encoding="utf-8").count("Deviation: "))
        }
    )
    assert listed and listed == commented


COUNTS = re.findall(r"^\| ([\d,]+)[^|]* \| ([\d.]+) \| ([\d.]+) \|$", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("words, base, big", COUNTS)
def test_parameter_counts_of_the_page(words, base, big):
    vocabulary = int(words.replace(",", ""))
    for arch, printed in (("vaswani_base", base), ("vaswani_big", big)):
        assert f"{account(arch, vocabulary).parameters / 1e6:.1f}" == printed


def test_no_vocabulary_gives_both_printed_counts():
    assert len(COUNTS) == 4
    fits = {
        arch: {v for v in range(30_000, 45_000, 100)
               if round(account(arch, v).parameters / 1e6) == millions}
        for arch, millions in (("vaswani_base", 65), ("vaswani_big", 213))
    }  # fmt: skip
    assert all(fits.values()) and not set.intersection(*fits.values())
