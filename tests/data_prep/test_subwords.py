"""subwords.py, encode.py, binarise.py: what goes in comes out again, or an error says why not."""

from __future__ import annotations

import random

import pytest
from corpus_files import PAIR, files_of, leftovers


@pytest.fixture
def clean_text(write_corpus):
    """A corpus of 200 made-up pairs with umlauts, rare letters and runs of punctuation."""
    chance = random.Random(5)
    words = ["Straße", "über", "haus", "cat", "dog's", "naïve", "3,5", "…", "(so)", "☃", "quick"]

    def sentences(count):
        return [" ".join(chance.choices(words, k=6)) for _ in range(count)]

    texts = {f"{split}_{side}": sentences(200 if split == "train" else 20)
             for split in ("train", "valid", "test") for side in ("en", "de")}
    return write_corpus("clean", **texts)


@pytest.fixture
def learned(step, clean_text, tmp_path):
    result = step("subwords", "--input", clean_text, "--output", tmp_path / "subwords", *PAIR,
                  "--vocab-size", 60)
    assert result.returncode == 0, result.stderr
    return tmp_path / "subwords" / "joint.model"


@pytest.fixture
def encoded(step, clean_text, learned, tmp_path):
    result = step("encode", "--input", clean_text, "--model", learned,
                  "--output", tmp_path / "encoded", *PAIR)
    assert result.returncode == 0, result.stderr
    return tmp_path / "encoded"


def test_the_vocabulary_has_the_size_asked_for(learned):
    vocabulary = learned.with_name("joint.vocab").read_text(encoding="utf-8").splitlines()
    assert len(vocabulary) == 60 and len(set(vocabulary)) == 60


def test_fairseq_undoes_the_encoding_exactly(encoded, clean_text):
    from fairseq.data.data_utils import post_process

    for name, data in files_of(clean_text).items():
        pieces = (encoded / name).read_text(encoding="utf-8").splitlines()
        assert any(len(line.split()) > len(post_process(line, "sentencepiece").split())
                   for line in pieces), "nothing was split"
        text = [post_process(line, "sentencepiece") for line in pieces]
        assert text == data.decode().splitlines()


def test_fairseq_reads_back_every_sentence(step, encoded, tmp_path):
    from fairseq.data import Dictionary, data_utils

    result = step("binarise", "--input", encoded, "--output", tmp_path / "data-bin", *PAIR)
    assert result.returncode == 0, result.stderr
    files = files_of(tmp_path / "data-bin")
    assert files["dict.en.txt"] == files["dict.de.txt"]
    words = Dictionary.load(str(tmp_path / "data-bin/dict.de.txt"))
    for split in ("train", "valid", "test"):
        for side in ("en", "de"):
            data = data_utils.load_indexed_dataset(
                str(tmp_path / f"data-bin/{split}.en-de.{side}"), words)
            lines = (encoded / f"{split}.{side}").read_text(encoding="utf-8").splitlines()
            assert [words.string(data[i]) for i in range(len(data))] == lines
    assert not leftovers(tmp_path)


def test_a_vocabulary_that_the_text_cannot_fill_is_refused(refused, clean_text, tmp_path):
    for size in (100_000, 5):
        message = refused("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR,
                          "--vocab-size", size)
        assert f"--vocab-size {size}" in message and "ocabulary size" in message
        assert not (tmp_path / "s").exists() and not leftovers(tmp_path)


def test_invalid_utf8_is_refused_not_replaced(refused, clean_text, tmp_path):
    with (clean_text / "train.de").open("ab") as file:
        file.write(b"\xfcber\n")
    message = refused("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR,
                      "--vocab-size", 60)
    assert "train.de, line 201, byte 1" in message


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
def test_a_missing_or_corrupt_model_is_refused(refused, clean_text, tmp_path, content):
    model = tmp_path / "joint.model"
    if content is not None:
        model.write_bytes(content)
    message = refused("encode", "--input", clean_text, "--model", model, "--output",
                      tmp_path / "encoded", *PAIR)
    assert str(model) in message and not (tmp_path / "encoded").exists()


def test_misaligned_encoded_text_is_refused(refused, encoded, tmp_path):
    lines = (encoded / "test.en").read_text(encoding="utf-8").splitlines(keepends=True)
    (encoded / "test.en").write_text("".join(lines[1:]), encoding="utf-8")
    message = refused("binarise", "--input", encoded, "--output", tmp_path / "data-bin", *PAIR)
    assert "test.en has 19 lines" in message and not leftovers(tmp_path)
