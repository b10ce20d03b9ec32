"""What subwords.py and binarise.py cannot work with is refused, and the message says why."""

from __future__ import annotations

import pytest
from corpus_files import PAIR, leftovers


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
    assert "train.de, line 201: not valid UTF-8 at byte 1;" in message


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
    ("size", "said", "end"),
    [
        (90_000, "Please set it to a value <= ", "is a good start (VOCAB_SIZE of an experiment)"),
        (5, "required_chars", "needs a piece: increase it (VOCAB_SIZE of an experiment)"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_explained(step, clean_text, tmp_path, size, said, end):
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
    assert done.stderr.endswith(f"{end}\n") and "character_coverage" not in done.stderr


def test_a_damaged_dictionary_of_another_run_is_refused(refused, step, clean_text, tmp_path):
    step("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR, "--vocab-size", 60)
    words = ("--input", clean_text, "--model", tmp_path / "s", *PAIR)
    assert step("binarise", *words, "--output", tmp_path / "data").returncode == 0
    dictionary = tmp_path / "data/dict.de.txt"
    dictionary.write_text(dictionary.read_text(encoding="utf-8") + "no count\n", encoding="utf-8")
    message = refused(
        "binarise", *words, "--output", tmp_path / "again", "--dictionaries", tmp_path / "data"
    )
    assert str(dictionary) in message and not leftovers(tmp_path)
    assert not (tmp_path / "again").exists()


def test_other_dictionaries_are_another_input(step, clean_text, tmp_path):
    """Data is made again when the dictionaries of the other run have changed, unless there are
    checkpoints that need the former."""
    step("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR, "--vocab-size", 60)
    words = ("--input", clean_text, "--model", tmp_path / "s", *PAIR)
    assert step("binarise", *words, "--output", tmp_path / "data").returncode == 0
    given = ("--dictionaries", tmp_path / "data")
    for last in ("", "a_new_word 1\n"):
        for language in ("en", "de"):
            dictionary = tmp_path / f"data/dict.{language}.txt"
            dictionary.write_text(dictionary.read_text(encoding="utf-8") + last, encoding="utf-8")
        done = step("binarise", *words, "--output", tmp_path / "again", *given)
        assert done.returncode == 0, done.stderr
        made = (tmp_path / "again/dict.de.txt").read_text(encoding="utf-8")
        assert made.endswith(last) and ("a_new_word" in made) == bool(last)
    checkpoints = tmp_path / "run/checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "checkpoint_last.pt").touch()
    dictionary.write_text(dictionary.read_text(encoding="utf-8") + "more 1\n", encoding="utf-8")
    done = step(
        "binarise", *words, "--output", tmp_path / "again", *given, "--run", tmp_path / "run"
    )
    assert done.returncode == 2 and f"the checkpoints in {checkpoints}" in done.stderr
    assert (tmp_path / "again/dict.de.txt").read_text(encoding="utf-8") == made


@pytest.mark.parametrize("workers", ["abc", "0", "-1", "1.5"])
def test_workers_that_are_no_number_are_refused(refused, clean_text, tmp_path, workers):
    words = ("--input", clean_text, "--output", tmp_path / "s", *PAIR, f"--workers={workers}")
    assert f"{workers!r} is not a whole number of at least 1" in refused("subwords", *words)
