"""TRAIN, VALID and TEST: files of one's own, plain or packed, taken whole or refused."""

from __future__ import annotations

import gzip
import os
from itertools import islice

import pytest
from corpus_files import PAIR, leftovers

from sources import user_files
from steps.errors import BadInput

LINES = {side: [f"{side} Zeile {n} ä" for n in range(6)] for side in ("en", "de")}


def write(path, lines, packed=False):
    data = lines if isinstance(lines, bytes) else "".join(f"{x}\n" for x in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    if packed:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data))
    else:
        path.write_bytes(data)


@pytest.fixture
def own(tmp_path):
    """own(spoilt={name: bytes}) writes a/train, b/train (packed), valid, test; gives the flags."""

    def make(spoilt=None):
        for name in ("a/train", "b/train", "valid", "test"):
            for side, lines in LINES.items():
                data = (spoilt or {}).get(f"{name}.{side}", lines)
                write(tmp_path / f"{name}.{side}", data, packed=name == "b/train")
        return (
            "--train",
            f"{tmp_path}/a/train,{tmp_path}/b/train",
            "--valid",
            tmp_path / "valid",
            "--test",
            tmp_path / "test",
            *PAIR,
        )

    return make


def test_plain_and_packed_files_follow_each_other(step, own, tmp_path):
    flags = own({"a/train.en": "\n".join(LINES["en"]).encode()})  # no line feed at the end
    result = step("fetch", *flags, "--output", tmp_path / "run/raw")
    assert result.returncode == 0, result.stderr
    raw = tmp_path / "run/raw"
    for side, lines in LINES.items():
        assert (raw / f"train.{side}").read_text().splitlines() == lines * 2
        assert (raw / f"test.{side}").read_text().splitlines() == lines
    again = step("fetch", *flags, "--output", raw)
    assert "already done" in again.stderr
    write(tmp_path / "b/train.de", LINES["de"][::-1], packed=True)  # same name and size as before
    again = step("fetch", *flags, "--output", raw)
    assert "written" in again.stderr
    assert (raw / "train.de").read_text().splitlines() == LINES["de"] + LINES["de"][::-1]


def test_carriage_returns_are_no_line_ends(step, own, tmp_path):
    """Windows line ends go, also after the last line; any other return becomes a space."""
    windows = "\r\n".join(LINES["en"]).encode() + b"\r"
    flags = own({"b/train.en": windows, "test.de": b"a\rb\nc\r\r\n\rd\ne\n\r\nf"})
    result = step("fetch", *flags, "--output", tmp_path / "run/raw")
    assert result.returncode == 0, result.stderr
    raw = tmp_path / "run/raw"
    assert (raw / "train.en").read_bytes() == "".join(f"{x}\n" for x in LINES["en"] * 2).encode()
    assert (raw / "test.de").read_bytes() == b"a b\nc \n d\ne\n\nf\n"


def test_a_line_that_is_too_long_is_not_read_whole(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"fine\n" + b"x" * 20_000_000))
    assert sum(map(len, islice(user_files.blocks(path), 2))) < 3_000_000
    with pytest.raises(BadInput, match=r"text\.gz, line 2: more than 100,000 bytes"):
        user_files.copy_checked(path, tmp_path / "out")


def test_tokens_of_moses_become_plain_text(step, own, tmp_path):
    tokens = "&quot; Isn &apos;t it 3.5 % ? &quot; A well @-@ known U ##AT##-##AT## turn .\n"
    flags = own({"a/train.en": (tokens * 6).encode()})
    raw = tmp_path / "run/raw"
    result = step("fetch", *flags, "--output", raw)
    assert result.returncode == 0, result.stderr
    assert f"WARNING: 6 of 6 lines of {tmp_path}/a/train.en have escapes" in result.stderr
    assert result.stderr.count("WARNING") == 1
    assert (raw / "train.en").read_text().startswith(tokens)
    result = step("fetch", *flags, "--output", raw, "--tokenised")
    assert "WARNING" not in result.stderr and "already done" not in result.stderr
    lines = (raw / "train.en").read_text().splitlines()
    assert lines[:6] == ['"Isn\'t it 3.5%?" A well-known U-turn.'] * 6
    assert lines[6:] == LINES["en"]
    assert (raw / "train.de").read_text().splitlines() == LINES["de"] * 2


def test_the_other_languages_are_another_corpus(step, own, tmp_path):
    flags = [*own()[:6], "--output", tmp_path / "run/raw", "--source", "en", "--target"]
    assert step("fetch", *flags, "de").returncode == 0
    for path in list(tmp_path.rglob("*.de*")):
        if "run" not in path.parts:
            path.rename(path.with_name(path.name.replace(".de", ".nl")))
    result = step("fetch", *flags, "nl")
    assert result.returncode == 0 and (tmp_path / "run/raw/train.nl").is_file(), result.stderr


@pytest.mark.parametrize(
    "data, line, message",
    [
        (b"\xef\xbb\xbfa\nb\nc\nd\ne\nf\n", 1, "a byte-order mark (UTF-8)"),
        ("a\nb\nc\nd\ne\nf\n".encode("utf-16"), 1, "a byte-order mark (UTF-16)"),
        (b"a\nb\n\xef\xbb\xbfc\nd\ne\nf\n", 3, "a byte-order mark (UTF-8)"),
        (b"a\nb\nc\0c\nd\ne\nf\n", 3, "a NUL byte at byte 2"),
        (b"a\nb\nc\nd\xfc\ne\nf\n", 4, "not valid UTF-8 at byte 2"),
        (
            b"a\nb\nc\nd\n" + b"e" * 1_000_000 + b"\nf\n",
            5,
            "more than 100,000 bytes, not a sentence",
        ),
    ],
)
@pytest.mark.parametrize("name", ["a/train.en", "b/train.de", "test.de"])
def test_a_bad_line_is_refused_by_file_and_line(refused, own, tmp_path, name, data, line, message):
    found = refused("fetch", *own({name: data}), "--output", tmp_path / "run/raw")
    file = f"{tmp_path}/{name}" + (".gz" if name.startswith("b/") else "")
    assert f"{file}, line {line}: {message}" in found
    assert not (tmp_path / "run/raw").exists() and not leftovers(tmp_path)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "is empty"),
        (b"a\nb\n", "valid.en has 6 lines but"),
    ],
)
def test_an_empty_or_shorter_side_is_refused(refused, own, tmp_path, data, message):
    found = refused("fetch", *own({"valid.de": data}), "--output", tmp_path / "run/raw")
    assert message in found and str(tmp_path / "valid.de") in found


@pytest.mark.parametrize("damage", [lambda gz: gz[:-9], lambda gz: gz[:40], lambda gz: b"text"])
def test_a_damaged_gzip_file_is_refused(refused, own, tmp_path, damage):
    flags = own()
    path = tmp_path / "b/train.de.gz"
    path.write_bytes(damage(path.read_bytes()))
    found = refused("fetch", *flags, "--output", tmp_path / "run/raw")
    assert f"{path} is truncated or not a gzip file" in found


def test_missing_files_and_missing_splits_are_named(refused, own, tmp_path):
    flags = own()
    (tmp_path / "b/train.de.gz").unlink()
    assert f"neither {tmp_path}/b/train.de nor" in refused("fetch", *flags, "--output", "raw")
    message = refused("fetch", "--train", tmp_path / "a/train", *PAIR, "--output", "raw")
    assert "--valid is missing" in message


def test_a_folder_that_cannot_be_written_is_named(refused, own, tmp_path):
    flags = own()
    (tmp_path / "file").write_text("in the way")
    message = refused("fetch", *flags, "--output", tmp_path / "file/raw")
    assert str(tmp_path / "file") in message and "Not a directory" in message
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o555)
        message = refused("fetch", *flags, "--output", tmp_path / "locked/raw")
        assert str(tmp_path / "locked") in message and "denied" in message


def test_the_recipe_takes_them_instead_of_the_corpus(prepare, own, tmp_path):
    own()
    printed = prepare(
        "multi30k_en_de", "--dry-run", TRAIN="a/train,b/train", VALID="valid", TEST="test"
    ).stdout
    assert "--train a/train,b/train --valid valid --test test --output" in printed
    assert "multi30k " not in printed.splitlines()[0]
    files = {"TRAIN": "a/train", "VALID": "valid", "TEST": "test"}
    printed = prepare("multi30k_en_de", "--dry-run", TOKENISED="1", **files).stdout
    assert "--test test --tokenised --output" in printed
    printed = prepare("multi30k_en_de", "--dry-run", TOKENISED="yes", **files)
    assert "TOKENISED is 'yes': expected 0 or 1" in printed.stderr
    printed = prepare("multi30k_en_de", "--dry-run", TOKENISED="1")
    assert "TOKENISED is for files of your own" in printed.stderr


def test_the_tokens_of_a_public_corpus_are_not_undone(refused, tmp_path):
    message = refused("fetch", "multi30k", *PAIR, "--tokenised", "--output", tmp_path / "raw")
    assert "--tokenised is for files of your own" in message
