"""subwords.py learns from counts of words what the tools learn from sentences."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import sentencepiece
from corpus_files import PAIR

from text import encoders, word_counts


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


def test_it_says_so_where_the_form_of_the_copied_runs_text_is_not_known(
    step, learned, clean_text, tmp_path
):
    base = shutil.copytree(learned, tmp_path / "base/subwords")
    (clean_text / "report.json").write_text('{"form": {"lowercase": true}}')
    done = step(
        *("subwords", "--input", clean_text, "--copy", base, "--output", tmp_path / "s", *PAIR)
    )
    assert f"{base.parent}/clean/report.json is missing: not checked" in done.stderr
    assert done.returncode == 0 and list((tmp_path / "s").glob("joint.*"))


def test_subwords_of_the_other_direction_are_not_copied(refused, learned, clean_text, tmp_path):
    base = shutil.copytree(learned, tmp_path / "base/subwords")
    for folder, languages in (
        (clean_text, '["en", "de"]'),
        (tmp_path / "base/clean", '["de", "en"]'),
    ):
        folder.mkdir(exist_ok=True)
        (folder / "report.json").write_text(f'{{"form": {{"languages": {languages}}}}}')
    message = refused(
        *("subwords", "--input", clean_text, "--copy", base, "--output", tmp_path / "s", *PAIR)
    )
    assert (
        f"{clean_text} has the languages ['en', 'de'], the text of {base} ['de', 'en']" in message
    )


def test_words_that_came_once_are_dropped_beyond_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_text("often often rare1\nrare2 often\n" * 2 + "last rare3\n")
    assert word_counts.count_words([path], 1) == Counter(
        {"often": 6, "rare1": 2, "rare2": 2, "last": 1, "rare3": 1}
    )
    monkeypatch.setattr(word_counts, "line_blocks", lambda p: Path(p).read_bytes().splitlines())
    counts = word_counts.count_words([path], 1, most=2)
    assert counts["often"] == 6 and len(counts) <= 3


def test_rarer_words_are_dropped_until_the_limit_holds(tmp_path, capsys):
    path = tmp_path / "text"
    path.write_text("a b c d a b c d a\n")
    assert word_counts.count_words([path], 1, most=3) == Counter({"a": 3})
    assert capsys.readouterr().err == "[subwords] 3 rare words were dropped\n"


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


def test_a_vocabulary_may_need_more_than_16_bits():
    encoder = encoders.Encoder(["x"] * 70_000, 0, lambda word: [int(word)])
    ids, sizes = encoder.lines(b"69999 1\n")
    assert ids.tolist() == [69_999, 1, 70_000] and sizes.tolist() == [3]


def test_subwords_of_a_text_in_another_form_are_not_copied(refused, learned, clean_text, tmp_path):
    base = shutil.copytree(learned, tmp_path / "base/subwords")
    for folder, lowercase in ((clean_text, "true"), (tmp_path / "base/clean", "false")):
        folder.mkdir(exist_ok=True)
        (folder / "report.json").write_text(f'{{"form": {{"lowercase": {lowercase}}}}}')
    message = refused(
        *("subwords", "--input", clean_text, "--copy", base, "--output", tmp_path / "s", *PAIR)
    )
    assert "set SUBWORDS and LOWERCASE as they were for that run" in message
