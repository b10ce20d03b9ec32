"""The public corpora from a mirror of small archives, and what a bad archive is told."""

from __future__ import annotations

import io
import json
import tarfile

import corpus_mirror as mirrors
import pytest
from corpus_files import leftovers

from sources.manifests import CORPORA, parts, read_manifest

EN_DE, EN_FR, DE_EN = (
    ("--source", a, "--target", b) for a, b in (("en", "de"), ("en", "fr"), ("de", "en"))
)


def made_up(key: str, count: int) -> tuple[list[str], list[str]]:
    """Sentences that say where they come from; with what SGML escapes."""
    return (
        [f"{key} sentence {n} of A & B < C ä" for n in range(count)],
        [f"{key} Satz {n} von A & B < C ö" for n in range(count)],
    )


TEXTS = {
    key: made_up(key, count)
    for key, count in (
        ("europarl", 7),
        ("commoncrawl", 6),
        ("news", 5),
        ("un", 4),
        ("giga", 3),
        ("valid", 4),
        ("test", 5),
    )
}


@pytest.fixture
def mirror(tmp_path):
    return tmp_path / "mirror"


@pytest.fixture
def fetched(step, mirror, tmp_path):
    """fetched(corpus, *flags) -> {file name: lines} of raw/."""

    def run(corpus, *flags):
        result = step(
            "fetch", corpus, "--output", tmp_path / "raw", *flags, DATA_MIRROR=str(mirror)
        )
        assert result.returncode == 0, result.stderr
        assert not leftovers(tmp_path)
        return {
            path.name: path.read_text(encoding="utf-8").splitlines()
            for path in (tmp_path / "raw").iterdir()
        }

    return run


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
            *EN_DE,
            DATA_MIRROR=str(mirror),
        )
        assert not (tmp_path / "run/raw").exists() and not leftovers(tmp_path)
        return message

    return run


def joined(keys, side):
    return [line for key in keys for line in TEXTS[key][side]]


@pytest.mark.parametrize("variant, archive", [("paper", mirrors.NEWS_11), ("v9", mirrors.NEWS_9)])
def test_wmt14_en_de(fetched, mirror, variant, archive):
    mirrors.write_wmt(mirror, "de", TEXTS)
    other = mirrors.NEWS_9 if archive == mirrors.NEWS_11 else mirrors.NEWS_11
    (mirror / other).unlink()  # what the other variant reads is not needed
    files = fetched("wmt14_en_de", *EN_DE, "--variant", variant)
    for side, language in enumerate(("en", "de")):
        assert files[f"train.{language}"] == joined(("europarl", "commoncrawl", "news"), side)
        assert files[f"valid.{language}"] == TEXTS["valid"][side]
        assert files[f"test.{language}"] == TEXTS["test"][side]


def test_the_papers_variant_is_the_default(mirror):
    manifest = read_manifest("wmt14_en_de")
    assert parts(manifest, "en", "de", "") == parts(manifest, "en", "de", "paper")
    assert parts(manifest, "en", "de", "v9") != parts(manifest, "en", "de", "paper")


def test_wmt14_en_fr(fetched, mirror):
    mirrors.write_wmt(mirror, "fr", TEXTS)
    files = fetched("wmt14_en_fr", *EN_FR)
    for side, language in enumerate(("en", "fr")):
        keys = ("europarl", "commoncrawl", "un", "news", "giga")
        assert files[f"train.{language}"] == joined(keys, side)
        assert files[f"test.{language}"] == TEXTS["test"][side]


def test_the_other_direction_reads_the_other_sources(fetched, mirror):
    mirrors.write_wmt(mirror, "de", TEXTS)
    manifest = read_manifest("wmt14_en_de")
    test = parts(manifest, "de", "en", "")["test"]
    assert [side.member for side in test[0]] == [
        "test-full/newstest2014-deen-src.de.sgm",
        "test-full/newstest2014-deen-ref.en.sgm",
    ]
    assert fetched("wmt14_en_de", *DE_EN)["test.en"] == TEXTS["test"][0]


def test_iwslt14_holds_out_every_23rd_clean_pair(fetched, step, mirror, tmp_path):
    german, english = made_up("train", 100)
    german[9], english[50] = "", "too long " * 100  # dropped before the counting
    english[3] = english[4]
    german[3] = german[4]  # a duplicate, which the literature keeps
    mirrors.write_iwslt(mirror, (german, english), TEXTS["test"])
    files = fetched("iwslt14_de_en", *DE_EN)
    assert "valid.de" not in files
    assert [line.strip() for line in files["train.de"]] == german
    assert files["test.de"] == TEXTS["test"][0] and files["test.en"] == TEXTS["test"][1]

    result = step(
        "clean",
        "--input",
        tmp_path / "raw",
        "--output",
        tmp_path / "clean",
        *DE_EN,
        "--max-length",
        175,
    )
    assert result.returncode == 0, result.stderr
    kept = [line for number, line in enumerate(english) if number not in (9, 50)]
    for name, expected in (
        ("valid", kept[22::23]),
        ("train", [x for n, x in enumerate(kept, 1) if n % 23]),
    ):
        assert (tmp_path / f"clean/{name}.en").read_text().splitlines() == expected
    counts = json.loads((tmp_path / "clean/report.json").read_text())["pairs"]
    assert (counts["train"]["kept"], counts["valid"]["kept"]) == (94, 4)


def test_checksums_are_published_ones_or_absent():
    for path in CORPORA.glob("*.json"):
        for name, file in read_manifest(path.stem)["files"].items():
            assert file.keys() <= {"size", "sha256", "md5"}, name
            assert len(file.get("sha256", "0" * 64)) == 64 and len(file.get("md5", "0" * 32)) == 32


def test_a_wrong_checksum_is_refused(refused, mirror, tmp_path):
    mirrors.write_wmt(mirror, "de", TEXTS)
    (mirror / "SHA256SUMS").unlink()  # so that the manifest's count
    message = refused(
        "fetch", "wmt14_en_de", "--output", tmp_path / "raw", *EN_DE, DATA_MIRROR=str(mirror)
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
        data[-6] ^= 1  # of gzip's CRC: the text is the right one, but nobody can know that
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


def test_an_unknown_variant_lists_the_known_ones(refused, tmp_path):
    message = refused(
        "fetch", "wmt14_en_de", "--output", tmp_path / "raw", *EN_DE, "--variant", "v12"
    )
    assert "'v12'" in message and "paper, v9" in message
