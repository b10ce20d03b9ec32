"""binarise.py writes the files of fairseq-preprocess, and fairseq undoes the encoding."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import binarise as module
import numpy as np
import pytest
import sentencepiece
from corpus_files import PAIR, files_of, leftovers
from fairseq_commands import run, train

SEPARATORS = {"sentencepiece": "sentencepiece", "moses-bpe": "subword_nmt"}


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


@pytest.mark.slow
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


def test_one_model_for_each_side_may_be_the_same_one(step, clean_text, tmp_path):
    """As fairseq without --joined-dictionary: each dictionary has the words of its side."""
    step("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR, "--vocab-size", 60)
    words = ("binarise", "--input", clean_text, "--model", tmp_path / "s", *PAIR, "--output")
    for name, model in (("same", tmp_path / "s"), ("spelt", tmp_path / "s/../s")):
        assert step(*words, tmp_path / name, "--target-model", model).returncode == 0
    assert step(*words, tmp_path / "joint").returncode == 0
    assert files_of(tmp_path / "same") == files_of(tmp_path / "spelt")
    counts = {}
    for name in ("same", "joint"):
        for side in ("en", "de"):
            lines = (tmp_path / name / f"dict.{side}.txt").read_text(encoding="utf-8").splitlines()
            counts[name, side] = {word: int(n) for word, n in map(str.split, lines)}
    assert counts["joint", "en"] == counts["joint", "de"]
    for word, count in counts["joint", "en"].items():
        assert count == sum(counts["same", side].get(word, 0) for side in ("en", "de"))


def test_ids_are_read_in_chunks(tmp_path, monkeypatch):
    """All of them, also of a text with more than fit into memory."""
    monkeypatch.setattr(module, "CHUNK", 7)
    np.arange(20, dtype=np.uint16).tofile(tmp_path / "ids")
    found = list(module.chunks(tmp_path / "ids", np.dtype(np.uint16)))
    assert [len(chunk) for chunk in found] == [7, 7, 6]
    assert np.concatenate(found).tolist() == list(range(20))


def test_unknown_subwords_are_reported(step, tmp_path, clean_text):
    """Of test, which has letters that train has not."""
    step("subwords", "--input", clean_text, "--output", tmp_path / "s", *PAIR, "--vocab-size", 60)
    words = ("binarise", "--input", clean_text, "--model", tmp_path / "s", *PAIR)
    said = step(*words, "--output", tmp_path / "data").stderr
    assert "[data-bin] unknown subwords: test.en " in said
    assert "train.en" not in said.split("unknown")[1]
