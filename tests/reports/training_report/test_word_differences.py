"""The words that are marked, against examples marked by hand: [so]."""

import re
import unicodedata

import pytest

from transformer_plugin.reports.training_report.word_differences import WORD, differences

PAIRS = [  # reference, translation
    ("Ein Mann fährt Rad.", "Ein Mann fährt Rad."),
    ("Ein [alter] Mann fährt.", "Ein Mann fährt[ schnell]."),
    ("[Der] Hund [läuft weg]", "[Ein] Hund [rennt]"),
    ("[Nichts]", ""),
    ("", "[Etwas da]"),
    ("他[喜欢]猫", "他猫"),
    ("a b[,] c", "a b c[!]"),
]


def by_hand(text):
    """The words that are in brackets, and the sentence without brackets."""
    marked = [word for part in re.findall(r"\[(.*?)\]", text) for word in part.split()]
    return marked, re.sub(r"[\[\]]", "", text)


@pytest.mark.parametrize("pair", PAIRS)
def test_differing_words_are_marked(pair):
    expected = [by_hand(text) for text in pair]
    found = differences(*(text for _, text in expected))
    for (marked, text), spans in zip(expected, found, strict=True):
        assert "".join(span.text for span in spans) == text
        assert [w for span in spans if span.differs for w in span.text.split()] == marked


def test_case_counts_unless_it_is_ignored():
    assert [s.text for s in differences("Sie singen", "sie singen")[1] if s.differs] == ["sie"]
    assert not any(s.differs for side in differences("Sie", "sie", lowercase=True) for s in side)


@pytest.mark.parametrize(
    "text",
    [
        "राम की किताब", "রামের বই", "தமிழ் நூல்", "كِتَابٌ جَدِيدٌ", "می\u200cخواهم", "ന്\u200dറെ വീട്",
        unicodedata.normalize("NFD", "café crème"), "H₂O m² x_1 3½",
    ],
)  # fmt: skip
def test_a_word_keeps_its_marks(text):
    assert WORD.findall(text) == text.split()


def test_a_symbol_and_its_selector_are_no_words():
    assert WORD.findall("a ❤\ufe0f 👩\u200d🚀 b") == ["a", "b"]
