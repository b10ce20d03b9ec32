"""clean.py: every dropped pair is counted under its reason; held-out pairs are never dropped."""

from __future__ import annotations

import json

import numpy as np
import pytest
from corpus_files import PAIR, leftovers

from text.cleaning import Limits, Normalisation, clean_block
from text.duplicates import DigestSet

GOOD = ("A good sentence here .", "Ein guter Satz hier .")


@pytest.fixture
def clean(step, tmp_path):
    """clean(raw, *flags) -> (report, {name: lines of the clean files})."""

    def run(raw, *flags):
        result = step("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR, *flags)
        assert result.returncode == 0, result.stderr
        report = json.loads((tmp_path / "clean" / "report.json").read_text())
        files = [path for side in ("en", "de") for path in (tmp_path / "clean").glob(f"*.{side}")]
        texts = {path.name: path.read_text(encoding="utf-8") for path in files}
        return report["pairs"], {name: text.split("\n")[:-1] for name, text in texts.items()}

    return run


def test_each_reason_is_counted_once_and_the_rest_is_kept(clean, write_corpus):
    pairs = [
        (GOOD, "kept"),
        (("", "Nichts ."), "empty"),
        (("   \t ", "Nur Leerraum ."), "empty"),
        ((b"broken \xff byte here", "Kaputtes Byte hier ."), "invalid_utf8"),
        (("Truncated \u00e4".encode()[:-1], "Abgeschnitten ."), "invalid_utf8"),
        ((b"a NUL byte\0 here .", "Ein Nullbyte hier ."), "nul_byte"),
        (("a b c d e f g h i", "a b c d e f g h i"), "too_long"),
        (("one " + "long" * 80 + " word", "ein langes Wort"), "too_long"),
        (("x" * 1_000_000, "eine sehr lange Zeile"), "too_long"),
        (("a b c d e f g", "a b c"), "ratio"),
        (("one two three four", "eins zwei drei vier"), "kept"),
        (GOOD, "duplicate"),
        (("A good  sentence here .\r", "Ein guter Satz hier ."), "duplicate"),
        (("a b", "a b"), "too_short"),
        (("Another source here .", GOOD[1]), "kept"),
    ]
    raw = write_corpus("raw", train_en=[p[0][0] for p in pairs], train_de=[p[0][1] for p in pairs])
    report, lines = clean(raw, "--min-length", 3, "--max-length", 8, "--max-ratio", 2)
    reasons = [reason for _, reason in pairs]
    expected = {reason: reasons.count(reason) for reason in set(reasons)}
    assert report["train"] == {"read": len(pairs), **expected}
    assert lines["train.en"] == [p[0][0] for p in pairs if p[1] == "kept"]
    assert lines["train.de"] == [p[0][1] for p in pairs if p[1] == "kept"]


def test_the_ratio_itself_is_allowed(clean, write_corpus):
    raw = write_corpus("raw", train_en=["a b c", "a b c d"], train_de=["a b", "a b"])
    report, lines = clean(raw, "--max-ratio", 1.5)
    assert lines["train.en"] == ["a b c"]
    assert report["train"]["ratio"] == 1


def test_the_longest_itself_is_allowed(clean, write_corpus):
    raw = write_corpus("raw", train_en=["a b c", "a b c d"], train_de=["a b c", "a b c d"])
    report, lines = clean(raw, "--max-length", 3)
    assert lines["train.en"] == ["a b c"] and report["train"]["too_long"] == 1


def test_every_nth_pair_is_held_out_whatever_the_blocks(clean, write_corpus):
    sentences = [f"{number} {'word ' * 200}end" for number in range(1500)]  # three blocks
    spaced = [sentence.replace(" word", "  word", 1) for sentence in sentences]
    raw = write_corpus("raw", train_en=["", *spaced], train_de=["", *sentences])  # one is dropped
    (raw / "hold-out.json").write_text('{"every": 23}')
    report, lines = clean(raw)
    assert lines["valid.en"] == lines["valid.de"] == sentences[22::23]
    assert lines["valid.raw.en"] == spaced[22::23] and lines["valid.raw.de"] == sentences[22::23]
    assert lines["train.de"] == [line for i, line in enumerate(sentences, 1) if i % 23]
    assert report["train"]["kept"] + report["valid"]["kept"] == 1500


def test_other_pairs_are_held_out_once_the_corpus_says_so(clean, write_corpus):
    sentences = [f"sentence {number}" for number in range(20)]
    raw = write_corpus("raw", train_en=sentences, train_de=sentences)
    for every in (5, 4):
        (raw / "hold-out.json").write_text(json.dumps({"every": every}))
        _, lines = clean(raw)
        assert lines["valid.en"] == sentences[every - 1 :: every]


def test_held_out_pairs_are_normalised_but_never_dropped(clean, write_corpus):
    source = ["same", "same", "", "a b c d e f g h i j"]
    target = ["gleich", "gleich", "leer", "u\u0308ber\u00a0 alles\r"]
    raw = write_corpus("raw", test_en=source, test_de=target)
    report, lines = clean(raw, "--max-length", 5)
    assert lines["test.en"] == source
    assert lines["test.de"] == ["gleich", "gleich", "leer", "\u00fcber alles"]
    assert report["test"] == {"read": 4, "kept": 4, "empty_but_kept": 1}


def test_only_line_feeds_end_a_line(clean, write_corpus):
    odd = "one\u2028two\x0cthree\x85four\rfive"
    raw = write_corpus("raw", train_en=[odd, "a b c d e"], train_de=["1 2 3 4 5", "v w x y z"])
    _, lines = clean(raw)
    assert lines["train.en"] == ["one two three four five", "a b c d e"]


def test_misaligned_sides_are_refused(refused, write_corpus, tmp_path):
    raw = write_corpus("raw", valid_en=["a", "b"], valid_de=["a"])
    message = refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert "valid.en has 2 lines" in message and "valid.de has 1" in message
    assert not (tmp_path / "clean").exists() and not leftovers(tmp_path)


def test_a_missing_file_is_named(refused, write_corpus, tmp_path):
    raw = write_corpus("raw")
    (raw / "train.de").unlink()
    message = refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert str(raw / "train.de") in message and "missing" in message


def test_invalid_utf8_in_a_held_out_set_names_line_and_byte(refused, write_corpus, tmp_path):
    raw = write_corpus("raw", test_de=["gut", b"schlecht \xfc", "gut"])
    message = refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert "test.de, line 2: not valid UTF-8 at byte 10" in message


@pytest.mark.parametrize(
    "line, message",
    [
        (b"x" * 1_000_000, "more than 100,000 bytes, not a sentence"),
        (b"a NUL byte \0 here", "a NUL byte at byte 12"),
    ],
)
def test_what_no_sentence_can_be_is_refused_in_a_held_out_set(
    refused, write_corpus, tmp_path, line, message
):
    raw = write_corpus("raw", valid_en=["gut", "gut", line], valid_de=["gut"] * 3)
    found = refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert f"{raw}/valid.en, line 3: {message}" in found
    assert not (tmp_path / "clean").exists() and not leftovers(tmp_path)


def test_a_held_out_set_in_subwords_is_refused(refused, step, write_corpus, tmp_path):
    """Before training, not when it is scored; single marks are text."""
    flags = ("--output", tmp_path / "clean", *PAIR)
    raw = write_corpus("raw", test_en=["plain", "al@@ ready", "▁split"], test_de=["a", "b", "c"])
    message = refused("clean", "--input", raw, *flags)
    assert f"{raw}/test.en, line 2: 2 of 3 lines hold '@@ ' or '▁'" in message
    raw = write_corpus("raw", test_en=["the mark @@ is", "plain", "text"], test_de=["▁", "b", "c"])
    assert step("clean", "--input", raw, *flags).returncode == 0


def test_nothing_left_is_an_error(refused, write_corpus, tmp_path):
    raw = write_corpus("raw", train_en=["", ""], train_de=["", ""])
    message = refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert "no pair" in message and "'empty': 2" in message


def test_an_empty_file_is_an_error(refused, write_corpus, tmp_path):
    raw = write_corpus("raw", train_en=[], train_de=[])
    message = refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert "train.en is empty" in message


@pytest.mark.parametrize(
    "flags",
    [
        ("--max-ratio", 0.5),
        ("--max-ratio", "nan"),
        ("--min-length", 0),
        ("--min-length", 9, "--max-length", 8),
        ("--target", "en"),
    ],
)
def test_limits_that_cannot_hold_are_refused(refused, write_corpus, tmp_path, flags):
    raw = write_corpus("raw")
    refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR, *flags)


def test_duplicates_are_found_in_whichever_block_they_are():
    """In blocks of many sizes, whose digests are merged in all orders of size."""
    random = np.random.default_rng(0)
    seen, known = DigestSet(), set()
    for size in [1, 5, 2, 40, 3, 1, 1, 8, 100, 7, 1, 60]:
        digests = random.integers(0, 400, size, np.uint64) * np.uint64(2**55)
        expected = []
        for digest in digests.tolist():
            expected.append(digest not in known)
            known.add(digest)
        assert seen.add(digests.tobytes()).tolist() == expected
    assert len(known) < 200 and sum(map(len, seen.runs)) == len(known)


def test_pairs_that_are_the_same_text_only_when_joined_are_two(clean, write_corpus):
    """As without spaces in Chinese."""
    raw = write_corpus("raw", train_en=["a b", "a"], train_de=["c d", "b c d"])
    report, texts = clean(raw, "--max-ratio", 9)
    assert report["train"]["kept"] == 2 and report["train"]["duplicate"] == 0
    raw = write_corpus("raw", train_en=["人口", "人"], train_de=["数", "口数"])
    report, texts = clean(raw)
    assert texts["train.en"] == ["人口", "人"] and texts["train.de"] == ["数", "口数"]


def test_a_bad_line_far_below_is_named_by_its_number(step, write_corpus, tmp_path):
    """Behind the first block that a worker gets."""
    lines = ["a sentence of the validation set"] * 20_000
    raw = write_corpus("raw", valid_en=lines, valid_de=[*lines[1:], b"broken \xff byte"])
    result = step("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert result.returncode == 2
    assert f"{raw / 'valid.de'}, line 20000: not valid UTF-8 at byte 8" in result.stderr


def test_another_translation_of_a_source_is_no_duplicate(clean, write_corpus):
    """As in corpora with several references; nor another source of a target."""
    pairs = [("hello .", "hallo ."), ("hello .", "guten Tag ."), ("hi .", "hallo ."),
             ("hello .", "hallo .")]  # fmt: skip
    english, german = zip(*pairs, strict=True)
    _, lines = clean(write_corpus("raw", train_en=english, train_de=german), "--max-ratio", 2)
    assert lines["train.en"] == list(english[:3]) and lines["train.de"] == list(german[:3])


@pytest.mark.parametrize("odd, reason", [(b"NUL\0 here", "nul_byte"), (b"x" * 99, "too_long")])
@pytest.mark.parametrize("side", [0, 1])
def test_either_side_may_be_the_reason_to_drop_a_pair(odd, reason, side):
    block = [[b"fine here\n"], [b"fine here\n"]]
    block[side] = [odd + b"\n"]
    found = clean_block(tuple(block), Limits(1, 2, 9), Normalisation(("en", "de")))
    assert found.counts == {reason: 1, "read": 1} and found.sides == (b"", b"")


def test_a_byte_order_mark_in_a_held_out_set_is_refused(refused, write_corpus, tmp_path):
    """In its first line; those of joined files are in the middle."""
    raw = write_corpus("raw", valid_en=["\ufeffa", "b"], valid_de=["a", "\ufeffb"])
    message = refused("clean", "--input", raw, "--output", tmp_path / "clean", *PAIR)
    assert f"{raw}/valid.en, line 1: a byte-order mark (UTF-8)" in message
