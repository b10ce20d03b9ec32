"""Damage in an archive or a compressed file: the right text comes out, or one clear refusal."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sources import file_formats, user_files
from sources.archives import extract
from steps.errors import BadInput

WORDS = ["the", "cat", "sat", "on", "Straße", "über", "a", "mat", "and", "others", "here", "see"]
CHANCE = random.Random(7)
SIDES = {
    f"t/train.{language}": "".join(
        f"{' '.join(CHANCE.choices(WORDS, k=9))} {n}\n" for n in range(60)
    ).encode()
    for language in ("en", "de")
}
MEMBERS = {"README": b"about\n" * 50, **SIDES, "t/last": b"not wanted\n" * 100}


def write_tar(path: Path, compression: str) -> None:
    with tarfile.open(path, f"w:{compression}") as archive:
        for name, data in MEMBERS.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def write_zip(path: Path, compression: int) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)


def extracted(path: Path) -> dict[str, bytes]:
    wanted = {name: path.with_name(f"out{number}") for number, name in enumerate(SIDES)}
    try:
        extract(path, wanted)
    except BadInput:
        assert not any(out.exists() for out in wanted.values())
        raise
    return {name: out.read_bytes() for name, out in wanted.items()}


def own_text(path: Path) -> bytes:
    output = path.with_name("out")
    output.unlink(missing_ok=True)
    user_files.copy_checked(path, output)
    return output.read_bytes()


def corpus_text(path: Path) -> bytes:
    return b"".join(line + b"\n" for line in file_formats.sentences(path, path.name))


TEXT = SIDES["t/train.de"]
FORMATS = {  # name of the file: how it is written, read, and what should come out
    "a.tgz": (lambda path: write_tar(path, "gz"), extracted, SIDES),
    "a.tar.bz2": (lambda path: write_tar(path, "bz2"), extracted, SIDES),
    "a.tar.xz": (lambda path: write_tar(path, "xz"), extracted, SIDES),
    "a.zip": (lambda path: write_zip(path, zipfile.ZIP_DEFLATED), extracted, SIDES),
    "stored.zip": (lambda path: write_zip(path, zipfile.ZIP_STORED), extracted, SIDES),
    "own.gz": (lambda path: path.write_bytes(gzip.compress(TEXT)), own_text, TEXT),
    "corpus.gz": (lambda path: path.write_bytes(gzip.compress(TEXT)), corpus_text, TEXT),
}
each_format = pytest.mark.parametrize("name", FORMATS)


def damage(path: Path, name: str, damaged: bytes) -> bool:
    """Whether a damaged file is refused; else the text must be right."""
    _, read, expected = FORMATS[name]
    path.write_bytes(damaged)
    try:
        assert read(path) == expected
    except BadInput as error:
        assert path.name in str(error) and "\n" not in str(error)
        return True
    return False


def flip_bits(path: Path, name: str, choose: Callable[[range], list[int]]) -> float:
    """The share of bits that were refused when flipped one by one."""
    FORMATS[name][0](path)
    data = path.read_bytes()
    assert not damage(path, name, data)
    refused = tried = 0
    for bit in choose(range(8 * len(data))):
        spoilt = bytearray(data)
        spoilt[bit // 8] ^= 1 << bit % 8
        refused += damage(path, name, bytes(spoilt))
        tried += 1
    return refused / tried


@each_format
def test_one_flipped_bit_gives_no_wrong_text(tmp_path, name):
    share = flip_bits(tmp_path / name, name, lambda bits: random.Random(3).sample(bits, 400))
    assert share > 0.6, "most bits are not of names and dates"


@pytest.mark.slow
@each_format
def test_many_flipped_bits_give_no_wrong_text(tmp_path, name):
    flip_bits(
        tmp_path / name, name, lambda bits: random.Random(4).sample(bits, min(len(bits), 15_000))
    )


@each_format
def test_a_truncated_file_is_refused(tmp_path, name):
    path = tmp_path / name
    FORMATS[name][0](path)
    data = path.read_bytes()
    for kept in range(1, len(data), len(data) // 40):
        assert damage(path, name, data[:kept]), kept


@pytest.mark.parametrize("name", ["a.tgz", "own.gz", "corpus.gz"])
def test_what_follows_a_gzip_file_is_refused(tmp_path, name):
    path = tmp_path / name
    FORMATS[name][0](path)
    assert damage(path, name, path.read_bytes() + b"more")


def flip_at(path: Path, text: bytes) -> None:
    """Change the first byte of `text` in a file."""
    data = bytearray(path.read_bytes())
    data[data.index(text)] ^= 1
    path.write_bytes(data)


def test_a_damaged_header_does_not_end_a_tar_archive(tmp_path):
    path = tmp_path / "a.tar"
    write_tar(path, "")
    flip_at(path, b"t/last")  # after all that is wanted
    with pytest.raises(BadInput, match=r"a\.tar: damaged.*header: bad checksum"):
        extracted(path)


def test_the_damaged_member_is_named(tmp_path):
    path = tmp_path / "a.zip"
    write_zip(path, zipfile.ZIP_STORED)
    flip_at(path, SIDES["t/train.de"])
    with pytest.raises(BadInput, match=r"a\.zip, member 't/train\.de': damaged.*CRC"):
        extracted(path)


def test_a_zip_archive_is_read_as_a_tar_archive_is(tmp_path):
    path = tmp_path / "a.zip"
    write_zip(path, zipfile.ZIP_DEFLATED)
    with pytest.raises(BadInput, match="has no member 'else'"):
        extract(path, {"README": tmp_path / "out", "else": tmp_path / "out2"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../outside", b"x")
    with pytest.raises(BadInput, match=r"'\.\./outside' leads out of the archive"):
        extracted(path)


def test_an_encrypted_member_is_named(tmp_path):
    path = tmp_path / "a.zip"
    write_zip(path, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1  # of the first entry of the directory
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"a\.zip: damaged.*'README' is encrypted"):
        extracted(path)
