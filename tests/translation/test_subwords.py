"""Text to subwords agrees with what data-prep did to the training text, piece by piece."""

import random
import sys
import unicodedata
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from transformer_plugin.translation.subwords import Prepared, SentencePieces, load_subwords

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "data-prep"))

from text import encoders  # noqa: E402
from text.cleaning import Normalisation  # noqa: E402
from text.moses import tokenise  # noqa: E402

ODD = [
    "",
    "   ",
    "\t\u3000",
    "e\u0301",
    "☃ 漢字",
    "a\u2028b\x85c\rd",
    "</s> <s> <pad> <unk> @@ ▁",
    "\x00\x07",
    "&amp; | [x]",
    "\U0001f600\u200d",
    "don't stop - “x” „y“…",
    "A" * 700,
]


@pytest.fixture
def subwords(run_folder):
    prepared = Prepared.beside(run_folder / "data-bin")
    return load_subwords(prepared.subwords, "en", prepared.lowercase)


def lines():
    chance = random.Random(1)
    letters = "aAbÄß.,-'\" \t(&<|☃é　0"
    return ["".join(chance.choices(letters, k=chance.randint(0, 60))) for _ in range(300)]


def test_pieces_are_those_of_data_prep(run_folder, subwords):
    moses = "moses" in run_folder.parent.name
    normalise = Normalisation(("en", "de"), moses=moses, lowercase=moses)
    encoder = encoders.load(run_folder / "subwords")
    dictionary = Dictionary.load(str(run_folder / "data-bin/dict.en.txt"))
    for line in [*lines(), *ODD]:
        numbers, _ = encoder.lines(normalise(line, 0).encode())
        expected = [dictionary.index(encoder.pieces[n]) for n in numbers.tolist()[:-1]]
        pieces = subwords.split(line)
        assert [dictionary.index(piece) for piece in pieces] == expected, line


def test_lower_case_is_as_prepared(run_folder):
    assert Prepared.beside(run_folder / "data-bin").lowercase == ("moses" in str(run_folder))


@pytest.mark.parametrize("line", ODD)
def test_odd_text_comes_back_but_for_white_space(subwords, line):
    found = subwords.join(subwords.split(line))
    assert "\n" not in found
    if isinstance(subwords, SentencePieces) and "▁" not in line:
        assert found == " ".join(unicodedata.normalize("NFC", line).split())


def test_words_begin_where_they_do(subwords):
    sentence = ["the", "cat", "sees", "the", "quick", "dog's"]
    pieces = subwords.split(" ".join(sentence))
    starts = [i for i in range(1, len(pieces)) if subwords.begins_word(pieces[i], pieces[i - 1])]
    spans = zip([0, *starts], [*starts, None], strict=True)
    words = [subwords.join(pieces[a:b]) for a, b in spans]
    assert " ".join(words).replace(" 's", "'s").split() == sentence


def test_text_is_joined_by_the_rules_of_its_language(subwords):
    """German has no ``'s``; sacremoses would leave it a word."""
    assert subwords.join(subwords.split("the dog's ball")) == "the dog's ball"


def test_what_is_no_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="--subwords"):
        load_subwords(tmp_path, "en")
    (tmp_path / "joint.model").write_text("no model")
    with pytest.raises(ValueError, match=r"joint\.model is not a sentencepiece model"):
        load_subwords(tmp_path, "en")


@pytest.mark.parametrize("text", ["merges", "#version: 0.2\na b\na b c\n", ""])
def test_damaged_merges_are_named(tmp_path, text, capsys):
    (tmp_path / "joint.codes").write_text(text)
    with pytest.raises(ValueError, match=r"joint\.codes is not a list of subword-nmt's merges"):
        load_subwords(tmp_path, "en")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["{", "[]", '{"form": 5}', "\x00"])
def test_a_damaged_report_of_cleaning_is_named(tmp_path, text):
    (tmp_path / "clean").mkdir()
    (tmp_path / "clean/report.json").write_text(text)
    with pytest.raises(ValueError, match=r"report\.json: not what data-prep/clean\.py writes"):
        Prepared.beside(tmp_path / "data-bin")


def test_words_are_split_as_in_their_language(prepared):
    """As data-prep does: English has another apostrophe than German and French."""
    sentence, found = "l'homme says: \u201edon't\u201c, z.B. 1,000 \u00abyes\u00bb", {}
    for language in ("en", "de", "fr"):
        subwords = load_subwords(prepared("moses-bpe") / "subwords", language)
        found[language] = " ".join(subwords.split(sentence)).replace("@@ ", "")
        assert found[language] == tokenise(sentence, language)
    assert len(set(found.values())) == 3
