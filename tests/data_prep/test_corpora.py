"""The public corpora from a mirror of small archives."""

from __future__ import annotations

import gzip
import json

import corpus_mirror as mirrors
import pytest
from corpus_files import leftovers
from corpus_mirror import TEXTS, made_up

from sources import file_formats
from sources.manifests import CORPORA, parts, read_manifest

EN_DE, EN_FR, DE_EN = (
    ("--source", a, "--target", b) for a, b in (("en", "de"), ("en", "fr"), ("de", "en"))
)


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


def test_an_unknown_variant_lists_the_known_ones(refused, tmp_path):
    message = refused(
        "fetch", "wmt14_en_de", "--output", tmp_path / "raw", *EN_DE, "--variant", "v12"
    )
    assert "'v12'" in message and "paper, v9" in message


@pytest.mark.parametrize("name", ["a.sgm", "a.sgml", "a.xml.gz", "a.tgz!b/a.sgm.gz"])
def test_segments_are_those_of_the_xml_whatever_the_name(tmp_path, name):
    text = '<seg id="1">&quot;It&apos;s&quot; A &amp; B &lt; C &gt; D &eacute;</seg>\n'
    path = tmp_path / "file"
    data = f"<refset><doc>\n{text}</doc></refset>\n".encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    found = [sentence.decode() for sentence in file_formats.sentences(path, name)]
    assert found == ['"It\'s" A & B < C > D &eacute;']
    assert file_formats.segment_numbers(path, name) == ["1"]
