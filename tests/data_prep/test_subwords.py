"""subwords.py, binarise.py: what goes in comes out again, or an error says why not."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from corpus_files import PAIR, files_of, leftovers
from fairseq_commands import run, train

from text import encoders, word_counts

SPLITS = ("train", "valid", "test")
SEPARATORS = {"sentencepiece": "sentencepiece", "moses-bpe": "subword_nmt"}


@pytest.fixture(scope="module")
def sentences():
    """sentences(count, more) makes lines of made-up words with umlauts and rare letters."""
    chance = random.Random(5)
    words = ["Straße", "über", "haus", "cat", "dog's", "naïve", "3,5", "…", "(so)", "☃", "quick"]

    def make(count, more=()):
        return [" ".join(chance.choices([*words, *more], k=6)) for _ in range(count)]

    return make


@pytest.fixture
def clean_text(write_corpus, sentences):
    """A corpus of 200 pairs; test has letters that train has not."""
    texts = {
        f"{split}_{side}": sentences(
            200 if split == "train" else 20, ["žaba"] if split == "test" else []
        )
        for split in SPLITS
        for side in ("en", "de")
    }
    return write_corpus("clean", **texts)


@pytest.fixture(params=["sentencepiece", "moses-bpe"])
def kind(request):
    return request.param


@pytest.fixture
def learned(step, clean_text, tmp_path, kind):
    result = step(
        "subwords",
        "--input",
        clean_text,
        "--output",
        tmp_path / "subwords",
        *PAIR,
        "--kind",
        kind,
        "--vocab-size",
        60,
        "--merges",
        20,
    )
    assert result.returncode == 0, result.stderr
    return tmp_path / "subwords"


@pytest.fixture
def binarise(step, clean_text, learned, tmp_path):
    """binarise(workers) -> {name: bytes} of the binary data."""

    def run(workers):
        folder = tmp_path / f"data-bin-{workers}"
        result = step(
            "binarise",
            "--input",
            clean_text,
            "--model",
            learned,
            "--output",
            folder,
            *PAIR,
            "--workers",
            workers,
        )
        assert result.returncode == 0, result.stderr
        assert not leftovers(tmp_path)
        return files_of(folder)

    return run


def encode_as_the_tools_do(learned, text):
    """The pieces of each line, by the tool that has learnt them, a line at a time."""
    lines = text.read_text(encoding="utf-8").splitlines()
    if (learned / "joint.model").exists():
        model = sentencepiece.SentencePieceProcessor(model_file=str(learned / "joint.model"))
        return [" ".join(model.encode(line, out_type=str)) for line in lines]
    done = subprocess.run(
        [sys.executable, "-m", "subword_nmt.apply_bpe", "-c", str(learned / "joint.codes")],
        input=text.read_text(encoding="utf-8"),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_files_are_those_of_fairseq_preprocess(binarise, learned, clean_text, tmp_path):
    for path in clean_text.iterdir():
        pieces = encode_as_the_tools_do(learned, path)
        (tmp_path / path.name).write_text("".join(f"{line}\n" for line in pieces))
    run(
        "fairseq-preprocess",
        "--source-lang",
        "en",
        "--target-lang",
        "de",
        "--joined-dictionary",
        "--trainpref",
        tmp_path / "train",
        "--validpref",
        tmp_path / "valid",
        "--testpref",
        tmp_path / "test",
        "--destdir",
        tmp_path / "stock",
    )
    expected = files_of(tmp_path / "stock")
    assert len(expected) == 14
    for workers in (1, 3):
        files = binarise(workers)
        sums = files.pop("SHA256SUMS").decode()
        assert files == expected
        assert sums == "".join(
            f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())
        )


def test_each_side_has_its_own_model(step, clean_text, tmp_path):
    """Pieces of the source, words of the target, and the dictionaries of fairseq-preprocess."""
    sides = (("source", "sentencepiece"), ("target", "words"))
    for side, kind in sides:
        result = step(
            "subwords",
            "--input",
            clean_text,
            "--output",
            tmp_path / side,
            *PAIR,
            "--side",
            side,
            "--kind",
            kind,
            "--vocab-size",
            50,
        )
        assert result.returncode == 0, result.stderr
    folder = tmp_path / "data-bin"
    words = [
        "binarise",
        "--input",
        clean_text,
        "--model",
        tmp_path / "source",
        "--output",
        folder,
        *PAIR,
        "--target-model",
        tmp_path / "target",
    ]
    assert step(*words).returncode == 0
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "source/joint.model"))
    for path in clean_text.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix == ".en":
            lines = [" ".join(model.encode(line, out_type=str)) for line in lines]
        (tmp_path / path.name).write_text("".join(f"{line}\n" for line in lines))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "fairseq_cli.preprocess",
            "--source-lang",
            "en",
            "--target-lang",
            "de",
            "--trainpref",
            tmp_path / "train",
            "--validpref",
            tmp_path / "valid",
            "--testpref",
            tmp_path / "test",
            "--destdir",
            tmp_path / "stock",
        ],
        capture_output=True,
        check=True,
    )
    files = files_of(folder)
    files.pop("SHA256SUMS")
    assert files == files_of(tmp_path / "stock")
    assert files["dict.en.txt"] != files["dict.de.txt"]
    assert "already done" in step(*words).stderr
    with (tmp_path / "target/joint.vocab").open("a") as vocabulary:  # another one
        vocabulary.write("new\n")
    assert "already done" not in step(*words).stderr


@pytest.mark.parametrize("kind", ["sentencepiece"], indirect=True)
def test_a_dictionary_of_other_data_is_refused(binarise, tmp_path):
    binarise(2)
    folder = tmp_path / "data-bin-2"
    flags = ("--max-update", 1, "--no-save")
    train(folder, tmp_path, *flags)
    for language in ("en", "de"):  # both, as of another corpus
        with (folder / f"dict.{language}.txt").open("a") as file:
            file.write("another 1\n")
    done = train(folder, tmp_path, *flags, status=1)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"{folder}/dict.de.txt does not belong to" in done.stderr
    assert "binarised with another dictionary" in done.stderr


def test_fairseq_undoes_the_encoding_exactly(binarise, clean_text, tmp_path, kind):
    from fairseq.data import Dictionary, data_utils
    from fairseq.data.data_utils import post_process

    binarise(2)
    words = Dictionary.load(str(tmp_path / "data-bin-2/dict.de.txt"))
    for split in ("train", "valid"):
        for side in ("en", "de"):
            data = data_utils.load_indexed_dataset(
                str(tmp_path / f"data-bin-2/{split}.en-de.{side}"), words
            )
            pieces = [words.string(data[i]) for i in range(len(data))]
            assert any("@@" in line or line.count("▁") < len(line.split()) for line in pieces)
            lines = (clean_text / f"{split}.{side}").read_text(encoding="utf-8").splitlines()
            assert [post_process(line, SEPARATORS[kind]) for line in pieces] == lines


def test_sentencepiece_learns_from_counts_what_it_learns_from_sentences(step, clean_text, tmp_path):
    step("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR, "--vocab-size", 60)
    vocabulary = (tmp_path / "s/joint.vocab").read_text(encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=[str(clean_text / "train.en"), str(clean_text / "train.de")],
        vocab_size=60,
        model_prefix=str(tmp_path / "whole"),
        model_type="bpe",
        character_coverage=1.0,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    assert vocabulary == (tmp_path / "whole.vocab").read_text(encoding="utf-8")
    assert len(set(vocabulary.splitlines())) == 60


def test_subword_nmt_learns_from_counts_what_it_learns_from_sentences(step, clean_text, tmp_path):
    step(
        "subwords",
        "--input",
        clean_text,
        "--output",
        tmp_path / "s",
        *PAIR,
        "--kind",
        "moses-bpe",
        "--merges",
        20,
    )
    both = "".join((clean_text / f"train.{side}").read_text() for side in ("en", "de"))
    done = subprocess.run(
        [sys.executable, "-m", "subword_nmt.learn_bpe", "-s", "20"],
        input=both,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "s/joint.codes").read_text() == done.stdout
    assert len(done.stdout.splitlines()) == 21


def test_words_that_came_once_are_dropped_beyond_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_text("often often rare1\nrare2 often\n" * 2 + "last rare3\n")
    assert word_counts.count_words([path], 1) == Counter(
        {"often": 6, "rare1": 2, "rare2": 2, "last": 1, "rare3": 1}
    )
    monkeypatch.setattr(word_counts, "line_blocks", lambda p: Path(p).read_bytes().splitlines())
    counts = word_counts.count_words([path], 1, most=2)
    assert counts["often"] == 6 and len(counts) <= 3


def test_an_encoder_forgets_but_gives_the_same(learned, clean_text, monkeypatch):
    block = (clean_text / "train.de").read_bytes()
    whole, sizes = encoders.load(learned).lines(block)
    encoders.load.cache_clear()
    monkeypatch.setattr(encoders, "CACHE_SIZE", 3)
    encoder = encoders.load(learned)
    again, again_sizes = encoder.lines(block)
    assert len(encoder) <= 3
    assert np.array_equal(whole, again) and np.array_equal(sizes, again_sizes)
    assert sizes.sum() == len(whole) and (whole == len(encoder.pieces)).sum() == 200


def test_a_vocabulary_that_the_text_cannot_fill_is_refused(refused, clean_text, tmp_path):
    for size in (100_000, 5):
        message = refused(
            "subwords",
            "--input",
            clean_text,
            "--output",
            tmp_path / "s",
            *PAIR,
            "--vocab-size",
            size,
        )
        assert f"--vocab-size {size}" in message and "ocabulary size" in message
        assert not (tmp_path / "s").exists() and not leftovers(tmp_path)


def test_invalid_utf8_is_refused_not_replaced(refused, clean_text, tmp_path):
    with (clean_text / "train.de").open("ab") as file:
        file.write(b"\xfcber\n")
    message = refused(
        "subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR, "--vocab-size", 60
    )
    assert "train.de, line 201, byte 1" in message


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
def test_a_missing_or_corrupt_model_is_refused(refused, clean_text, tmp_path, content):
    (tmp_path / "s").mkdir()
    model = tmp_path / "s/joint.model"
    if content is not None:
        model.write_bytes(content)
        model.with_suffix(".vocab").write_bytes(content)
    message = refused(
        "binarise",
        "--input",
        clean_text,
        "--model",
        tmp_path / "s",
        "--output",
        tmp_path / "data-bin",
        *PAIR,
    )
    assert str(model) in message and not (tmp_path / "data-bin").exists()


def test_misaligned_text_is_refused(refused, step, clean_text, tmp_path):
    step("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR, "--vocab-size", 60)
    lines = (clean_text / "test.en").read_text(encoding="utf-8").splitlines(keepends=True)
    (clean_text / "test.en").write_text("".join(lines[1:]), encoding="utf-8")
    message = refused(
        "binarise",
        "--input",
        clean_text,
        "--model",
        tmp_path / "s",
        "--output",
        tmp_path / "data-bin",
        *PAIR,
    )
    assert "test.en has 19 lines" in message and not leftovers(tmp_path)


@pytest.mark.parametrize(
    ("size", "said"), [(90_000, "Please set it to a value <= "), (5, "smaller than required_chars")]
)
def test_a_vocabulary_that_does_not_fit_is_explained(step, clean_text, tmp_path, size, said):
    done = step(
        "subwords",
        "--input",
        clean_text,
        "--output",
        tmp_path / "subwords",
        *PAIR,
        "--vocab-size",
        size,
    )
    assert done.returncode == 2 and not leftovers(tmp_path)
    assert done.stderr.startswith(f"subwords.py: sentencepiece cannot learn --vocab-size {size}: ")
    assert said in done.stderr and "src/" not in done.stderr and "W0000" not in done.stderr
    assert ("(VOCAB_SIZE of an experiment)" in done.stderr) == (size == 90_000)
