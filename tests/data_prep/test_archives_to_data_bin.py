"""The corpora from archives of their true names and layout to fairseq's binary data."""

from __future__ import annotations

import corpus_mirror as mirrors
import pytest
from corpus_files import leftovers
from corpus_texts import IWSLT_COUNTS, WMT_COUNTS, texts
from fairseq.data import Dictionary, data_utils
from fairseq.data.data_utils import post_process

pytestmark = pytest.mark.real_data

SENTENCEPIECE, MOSES_BPE = ("sentencepiece", "--vocab-size", 1200), ("moses-bpe", "--merges", 500)


@pytest.fixture
def prepared(step, tmp_path):
    """prepared(corpus, source, target, subwords, *flags of fetch) runs the four steps."""

    def run(corpus, source, target, subwords, *flags):
        pair, at = ("--source", source, "--target", target), tmp_path / "run"
        moses = ["--moses"] if subwords[0] == "moses-bpe" else []
        for name, *arguments in (
            ("fetch", corpus, "--output", at / "raw", *flags),
            ("clean", "--input", at / "raw", "--output", at / "clean", *moses),
            ("subwords", "--input", at / "clean", "--output", at / "subwords", "--kind", *subwords),
            (
                "binarise",
                "--input",
                at / "clean",
                "--model",
                at / "subwords",
                "--output",
                at / "data-bin",
            ),
        ):
            result = step(name, *arguments, *pair, DATA_MIRROR=str(tmp_path / "mirror"))
            assert result.returncode == 0, result.stderr
        assert not leftovers(tmp_path)
        return at

    return run


def check(run, source, target, subwords, most_dropped):
    """What fairseq reads is the clean text, and nearly all of the raw text is in it."""
    words = Dictionary.load(str(run / f"data-bin/dict.{target}.txt"))
    marks = {"sentencepiece": "sentencepiece", "moses-bpe": "subword_nmt"}[subwords[0]]
    for language in (source, target):
        for split in ("train", "valid", "test"):
            data = data_utils.load_indexed_dataset(
                str(run / f"data-bin/{split}.{source}-{target}.{language}"), words
            )
            lines = (run / f"clean/{split}.{language}").read_text(encoding="utf-8").splitlines()
            assert len(data) == len(lines)
            if split == "train":
                text = [post_process(words.string(data[i]), marks) for i in range(len(data))]
                assert text == lines
        raw, kept = (
            sum(
                path.read_bytes().count(b"\n")
                for path in (run / folder).iterdir()
                if path.suffix == f".{language}"
            )
            for folder in ("raw", "clean")
        )
        assert raw * (1 - most_dropped) <= kept


@pytest.mark.parametrize("variant, subwords", [("paper", SENTENCEPIECE), ("v9", MOSES_BPE)])
def test_wmt14_en_de(prepared, tmp_path, subwords, variant):
    found = texts("wmt14_en_de/europarl-v7-20k", WMT_COUNTS)
    mirrors.write_wmt(tmp_path / "mirror", "de", found)
    run = prepared("wmt14_en_de", "en", "de", subwords, "--variant", variant)
    check(run, "en", "de", subwords, most_dropped=0.15)
    assert (run / "raw/test.de").read_text().splitlines() == [
        " ".join(line.split()) for line in found["test"][1]
    ]


def test_wmt14_en_fr(prepared, tmp_path):
    mirrors.write_wmt(tmp_path / "mirror", "fr", texts("wmt14_en_fr/europarl-v7-slice", WMT_COUNTS))
    run = prepared("wmt14_en_fr", "en", "fr", SENTENCEPIECE)
    check(run, "en", "fr", SENTENCEPIECE, most_dropped=0.15)


def test_iwslt14_de_en(prepared, tmp_path):
    found = texts("iwslt14_de_en/train-46k.tok.lc", IWSLT_COUNTS)
    (english, german), (test_english, test_german) = found["train"], found["test"]
    mirrors.write_iwslt(tmp_path / "mirror", (german, english), (test_german, test_english))
    run = prepared("iwslt14_de_en", "de", "en", MOSES_BPE)
    check(run, "de", "en", MOSES_BPE, most_dropped=0.15)
    train, valid = (
        (run / f"clean/{split}.de").read_bytes().count(b"\n") for split in ("train", "valid")
    )
    assert valid == (train + valid) // 23
