"""Moses' tokens: what clean.py --moses writes, and that transformer-plugin undoes it."""

from __future__ import annotations

import pytest
from corpus_files import PAIR
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from text.moses import tokenise
from transformer_plugin.scoring.hypotheses import detokenise


@pytest.mark.parametrize(
    "text, tokens",
    [
        (
            'He said: "It\'s 3.5% (at most)."',
            "He said : &quot; It &apos;s 3.5 % ( at most ) . &quot;",
        ),
        ("Café-Bar & „Straße“ …", "Café-Bar &amp; &quot; Straße &quot; ..."),
        ("the U.S. and Mr. Smith", "the U.S. and Mr. Smith"),
    ],
)
def test_tokens_are_those_of_moses(text, tokens):
    assert tokenise(text, "en") == tokens


@pytest.mark.parametrize(
    "text",
    [
        "It's a test, isn't it?",
        "Costs rose by 3.5% (in 2014): R & D is to blame; or not!",
        'She said "no" and left.',
        "A well-known fact: x < y & y > z.",
    ],
)
def test_what_is_tokenised_comes_back(text):
    assert detokenise([tokenise(text, "en")], "en") == [text]


def test_clean_counts_tokens_and_lowers_case(step, write_corpus, tmp_path):
    raw = write_corpus(
        "raw",
        train_en=["One, Two.", "One, two (three)."],
        train_de=["Eins, Zwei.", "Eins, zwei (drei)."],
    )
    result = step(
        "clean",
        "--input",
        raw,
        "--output",
        tmp_path / "clean",
        *PAIR,
        "--moses",
        "--lowercase",
        "--max-length",
        4,
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "clean/train.en").read_text() == "one , two .\n"
    assert (tmp_path / "clean/train.de").read_text() == "eins , zwei .\n"
    assert "too_long 1" in result.stderr


def test_each_side_is_tokenised_in_its_own_language(step, write_corpus, tmp_path):
    """In which "Jan." or "Mio." is an abbreviation."""
    text = "Jan. One Mio. Eins"
    lines = {f"{split}_{side}": [text] for split in ("train", "valid") for side in ("en", "de")}
    raw = write_corpus("raw", **lines)
    result = step("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR, "--moses")
    assert result.returncode == 0, result.stderr
    for split in ("train", "valid"):
        assert (tmp_path / f"clean/{split}.en").read_text() == "Jan. One Mio . Eins\n"
        assert (tmp_path / f"clean/{split}.de").read_text() == "Jan . One Mio. Eins\n"


def test_punctuation_is_normalised_in_the_sentences_language():
    """English and German differ in the order of a quotation mark and a comma."""
    line = 'Er sagte "ja", und ging.'
    for language in ("en", "de"):
        plain = MosesPunctNormalizer(language).normalize(line)
        tokens = MosesTokenizer(language).tokenize(plain, return_str=True)
        assert tokenise(line, language) == tokens
    assert tokenise(line, "en") != tokenise(line, "de")
