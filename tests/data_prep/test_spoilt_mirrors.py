"""A mirror whose archives are hostile, damaged or wrong: fetch.py refuses it and leaves nothing."""

from __future__ import annotations

import io
import tarfile

import corpus_mirror as mirrors
import pytest
from corpus_files import PAIR, leftovers
from corpus_mirror import TEXTS


@pytest.fixture
def refused_wmt(refused, mirror, tmp_path):
    """The message for a mirror that `spoil(path of an archive)` has spoilt."""

    def run(archive, spoil):
        mirrors.write_wmt(mirror, "de", TEXTS)
        spoil(mirror / archive)
        mirrors.write_checksums(mirror)
        message = refused(
            "fetch",
            "wmt14_en_de",
            "--output",
            tmp_path / "run/raw",
            *PAIR,
            DATA_MIRROR=str(mirror),
        )
        assert not (tmp_path / "run/raw").exists() and not leftovers(tmp_path)
        return message

    return run


def test_a_wrong_checksum_is_refused(refused, mirror, tmp_path):
    mirrors.write_wmt(mirror, "de", TEXTS)
    (mirror / "SHA256SUMS").unlink()  # so that the manifest's count
    message = refused(
        "fetch", "wmt14_en_de", "--output", tmp_path / "raw", *PAIR, DATA_MIRROR=str(mirror)
    )
    assert "training-parallel-europarl-v7.tgz" in message and "expected 657,632,379" in message


def repacked(*extra):
    """A spoiler that rewrites an archive with more members in front."""

    def spoil(path):
        with tarfile.open(path) as old:
            members = [(m, old.extractfile(m).read()) for m in old if m.isreg()]
        with tarfile.open(path, "w:gz") as new:
            for member in extra:
                new.addfile(member, io.BytesIO(b"x" * member.size))
            for member, data in members:
                new.addfile(member, io.BytesIO(data))

    return spoil


def member(name, **fields):
    found = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(found, field, value)
    return found


@pytest.mark.parametrize(
    "extra",
    [
        member("../../x", size=3),
        member("/etc/x", size=3),
        member("training/../../x", size=3),
        member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("training/link", type=tarfile.SYMTYPE, linkname="../../x"),
        member("hard", type=tarfile.LNKTYPE, linkname="../x"),
    ],
    ids=lambda m: f"{m.name}-{m.linkname}",
)
def test_an_archive_that_leads_out_of_itself_is_refused(refused_wmt, tmp_path, extra):
    message = refused_wmt(mirrors.EUROPARL, repacked(extra))
    assert "training-parallel-europarl-v7.tgz" in message and f"'{extra.name}'" in message
    assert not (tmp_path / "x").exists() and not (tmp_path.parent / "x").exists()


def test_a_link_in_place_of_the_text_is_refused(refused_wmt):
    def spoil(path):
        mirrors.write_archive(path, {})
        with tarfile.open(path, "w:gz") as archive:
            archive.addfile(
                member("training/europarl-v7.de-en.en", type=tarfile.SYMTYPE, linkname="other")
            )

    assert "not a regular file" in refused_wmt(mirrors.EUROPARL, spoil)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.0])
def test_a_truncated_archive_is_refused(refused_wmt, keep):
    def spoil(path):
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * keep)])

    message = refused_wmt(mirrors.COMMON_CRAWL, spoil)
    assert "training-parallel-commoncrawl.tgz: damaged, truncated or not an archive" in message


def test_an_archive_whose_checksum_is_wrong_is_refused(refused_wmt):
    def spoil(path):
        data = bytearray(path.read_bytes())
        data[-6] ^= 1  # a byte of gzip's CRC: the text is the right one, but nobody can know that
        path.write_bytes(data)

    message = refused_wmt(mirrors.EUROPARL, spoil)
    assert "europarl-v7.tgz: damaged" in message and "CRC" in message


def test_a_missing_member_is_named(refused_wmt):
    message = refused_wmt(mirrors.DEV, lambda path: mirrors.write_archive(path, {"a": b"b\n"}))
    assert "dev.tgz has no member 'dev/newstest2013.en'" in message


def test_misaligned_members_are_refused(refused_wmt):
    def spoil(path):
        mirrors.write_archive(
            path, {"dev/newstest2013.en": b"a\nb\n", "dev/newstest2013.de": b"a\n"}
        )

    message = refused_wmt(mirrors.DEV, spoil)
    assert "dev/newstest2013.en has 2 lines" in message and "newstest2013.de has 1" in message


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda s: s.replace(b"</seg>", b"", 1), "a <seg> without its </seg>"),
        (lambda s: s[: s.rindex(b"</seg>")], "4 whole segments, expected 5"),
        (lambda s: s.replace(b'id="2"', b'id="7"', 1), "different ids"),
        (lambda s: b"nothing here", "expected at least 1"),
    ],
)
def test_a_damaged_test_set_is_refused(refused_wmt, damage, message):
    def spoil(path):
        with tarfile.open(path) as old:
            members = {m.name: old.extractfile(m).read() for m in old}
        name = "test-full/newstest2014-deen-src.en.sgm"
        mirrors.write_archive(path, members | {name: damage(members[name])})

    found = refused_wmt(mirrors.TEST, spoil)
    assert message in found and "newstest2014-deen-src.en.sgm" in found
