"""fetch.py: exactly the expected bytes or a clear refusal, and nothing half-written."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile

import pytest
from corpus_files import PAIR, files_of, leftovers

LINES = {
    f"{split}.{language}": "".join(f"{split} {language} Zeile {n} ä\n" for n in range(40))
    for split in ("train", "valid", "test")
    for language in ("en", "de")
}


@pytest.fixture
def corpus(tmp_path):
    """corpus(changed={name: bytes of the .gz}) -> manifest path; files lie in mirror/small/.

    The manifest describes the files as they are; `spoil` afterwards to break a promise.
    """

    def make(changed=None, addresses=("http://127.0.0.1:9/",)):
        folder = tmp_path / "mirror" / "small"
        folder.mkdir(parents=True, exist_ok=True)
        files = {}
        for name, text in LINES.items():
            data = (changed or {}).get(name, gzip.compress(text.encode()))
            (folder / f"{name}.gz").write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
            files[f"{name}.gz"] = {"size": len(data), "sha256": digest}
        manifest = {
            "addresses": list(addresses),
            "mirror_folder": "small",
            "languages": ["de", "en"],
            "splits": {split: split + ".{language}.gz" for split in ("train", "valid", "test")},
            "files": files,
        }
        path = tmp_path / "small.json"
        path.write_text(json.dumps(manifest))
        return path

    return make


@pytest.fixture
def refused_fetch(refused, tmp_path):
    """The message with which a manifest's corpus is refused; nothing may be left behind."""

    def run(manifest, *flags, **environment):
        environment = {"DATA_MIRROR": str(tmp_path / "mirror"), **environment}
        message = refused(
            "fetch", manifest, "--output", tmp_path / "run/raw", *(flags or PAIR), **environment
        )
        assert not (tmp_path / "run/raw").exists() and not leftovers(tmp_path)
        return message

    return run


@pytest.mark.parametrize("as_address", [False, True])
def test_a_mirror_folder_or_address_gives_the_text(step, corpus, tmp_path, as_address):
    mirror = tmp_path / "mirror"
    address = mirror.as_uri() if as_address else str(mirror)
    words = ("fetch", corpus(), "--output", tmp_path / "run/raw", *PAIR)
    result = step(*words, DATA_MIRROR=address)
    assert result.returncode == 0, result.stderr
    assert files_of(tmp_path / "run/raw") == {name: text.encode() for name, text in LINES.items()}
    assert not leftovers(tmp_path)


def test_a_relative_mirror_is_relative_to_where_one_stands(step, corpus, tmp_path):
    result = step("fetch", corpus(), "--output", "run/raw", *PAIR, DATA_MIRROR="mirror")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "run/raw/train.en").is_file()


def test_the_second_address_serves_when_the_first_does_not(step, corpus, tmp_path):
    addresses = ((tmp_path / "nowhere").as_uri() + "/", (tmp_path / "mirror/small").as_uri() + "/")
    words = ("fetch", corpus(addresses=addresses), "--output", tmp_path / "run/raw", *PAIR)
    result = step(*words, DATA_MIRROR="")
    assert result.returncode == 0, result.stderr
    assert files_of(tmp_path / "run/raw").keys() == LINES.keys()


def test_a_wrong_checksum_is_refused_with_both_values(refused_fetch, corpus, tmp_path):
    manifest = corpus()
    path = tmp_path / "mirror/small/valid.de.gz"
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    message = refused_fetch(manifest)
    assert "valid.de.gz" in message and expected in message
    assert hashlib.sha256(data).hexdigest() in message


def test_a_wrong_size_is_refused_with_both_values(refused_fetch, corpus, tmp_path):
    manifest = corpus()
    path = tmp_path / "mirror/small/train.en.gz"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-7])
    message = refused_fetch(manifest)
    assert "train.en.gz" in message and f"{size - 7:,} bytes, expected {size:,}" in message


@pytest.mark.parametrize(
    "damage",
    [lambda gz: gz[:-12], lambda gz: b"plain text" + gz, lambda gz: gz[:30] + bytes(20) + gz[50:]],
)
def test_a_damaged_gzip_is_refused_even_when_its_checksum_agrees(refused_fetch, corpus, damage):
    packed = gzip.compress(LINES["test.en"].encode())
    message = refused_fetch(corpus({"test.en": damage(packed)}))
    assert "test.en.gz" in message and "truncated or not a gzip" in message


def test_a_missing_file_is_named(refused_fetch, corpus, tmp_path):
    manifest = corpus()
    (tmp_path / "mirror/small/test.de.gz").unlink()
    message = refused_fetch(manifest)
    assert "test.de.gz" in message and "DATA_MIRROR" in message


def test_no_network_is_said_plainly(refused_fetch, corpus):
    message = refused_fetch(corpus(), DATA_MIRROR="")
    assert "http://127.0.0.1:9/train.en.gz" in message and "DATA_MIRROR" in message


def test_misaligned_sides_are_refused(refused_fetch, corpus):
    short = gzip.compress(LINES["valid.de"].encode().split(b"\n", 1)[1])
    message = refused_fetch(corpus({"valid.de": short}))
    assert "has 40 lines" in message and "has 39" in message


def test_members_of_one_name_in_two_archives_are_two(step, corpus, tmp_path):
    """As in a manifest's "{language}.zip!text"; and a zip archive is one that fetch.py reads."""
    path = corpus()
    manifest = json.loads(path.read_text())
    manifest["splits"]["train"] = "{language}.zip!text"
    for language in ("en", "de"):
        with zipfile.ZipFile(tmp_path / f"mirror/small/{language}.zip", "w") as archive:
            archive.writestr("text", f"{language} only\n")
        manifest["files"][f"{language}.zip"] = {}
    path.write_text(json.dumps(manifest))
    result = step(
        "fetch", path, "--output", tmp_path / "raw", *PAIR, DATA_MIRROR=str(tmp_path / "mirror")
    )
    assert result.returncode == 0, result.stderr
    files = files_of(tmp_path / "raw")
    assert (files["train.en"], files["train.de"]) == (b"en only\n", b"de only\n")
    assert not [name for name in files if "member" in name]


@pytest.mark.parametrize("listed", [True, False], ids=["SHA256SUMS", "no checksum is known"])
def test_another_edition_in_a_mirror_is_read(step, corpus, tmp_path, listed):
    path, mirror = corpus(), tmp_path / "mirror"
    manifest = json.loads(path.read_text())

    def fetch(**variables):
        done = step("fetch", path, "--output", tmp_path / "run/raw", *PAIR, **variables)
        assert done.returncode == 0, done.stderr
        return "already done" in done.stderr, (tmp_path / "run/raw/test.de").read_text()

    if not listed:
        manifest["files"]["test.de.gz"] = {}
        path.write_text(json.dumps(manifest))
    text = LINES["test.de"]
    assert fetch(DATA_MIRROR=str(mirror)) == (False, text)
    for other in ("", "http://127.0.0.1:9/"):  # which are not read: no checksum differs
        assert fetch(DATA_MIRROR=other) == (True, text)
    for number in range(2):
        edition = gzip.compress(text.replace("Zeile", f"edition {number}").encode())
        (mirror / "small/test.de.gz").write_bytes(edition)
        if listed:
            digest = hashlib.sha256(edition).hexdigest()
            (mirror / "SHA256SUMS").write_text(f"{digest}  small/test.de.gz\n")
        expected = text.replace("Zeile", f"edition {number}")
        assert fetch(DATA_MIRROR=str(mirror)) == (False, expected)
        assert fetch(DATA_MIRROR=str(mirror)) == (True, expected)


def test_a_part_that_is_empty_on_both_sides_is_refused(refused_fetch, corpus):
    message = refused_fetch(corpus({"train.en": b"", "train.de": gzip.compress(b"")}))
    assert "train.en.gz is empty" in message


def test_invalid_utf8_in_the_test_set_is_refused(refused_fetch, corpus):
    text = LINES["test.de"].encode().replace("7 ä".encode(), b"7 \xe4")
    message = refused_fetch(corpus({"test.de": gzip.compress(text)}))
    assert "test.de, line 8" in message and "UTF-8" in message


def test_unknown_corpora_and_languages_list_what_is_known(refused_fetch, corpus):
    assert "multi30k" in refused_fetch("multi31k")
    message = refused_fetch(corpus(), "--source", "en", "--target", "cs")
    assert "'cs'" in message and "de, en" in message


def test_a_file_that_is_not_a_manifest_is_refused(refused_fetch, tmp_path):
    path = tmp_path / "odd.json"
    for text in ("{", "[]", '{"files": {}}'):
        path.write_text(text)
        assert "not a manifest" in refused_fetch(path)


@pytest.mark.parametrize("fields", [
    {"files": ["a.en", "a.de"]},
    {"splits": {"train": ["a.{lang}"], "valid": "b.{language}", "test": "c.{language}"}},
    {"splits": {"train": "a.{language}", "valid": {"evry": 3}, "test": "c.{language}"}},
    {"splits": {"train": "a.{language}", "valid": {"every": "3"}, "test": "c.{language}"}},
    {"variants": ["a.{language}"]},
])  # fmt: skip
def test_a_wrong_field_of_a_manifest_is_refused(refused_fetch, corpus, tmp_path, fields):
    manifest = json.loads(corpus().read_text())
    (tmp_path / "odd.json").write_text(json.dumps(manifest | fields))
    message = refused_fetch(tmp_path / "odd.json")
    assert "odd.json is not a manifest: " in message and "Traceback" not in message


def test_a_variant_may_be_one_pattern(step, corpus, tmp_path):
    manifest = json.loads(corpus().read_text()) | {"variants": {"more": "valid.{language}.gz"}}
    (tmp_path / "small.json").write_text(json.dumps(manifest))
    words = ("fetch", tmp_path / "small.json", "--output", "raw", *PAIR)
    assert step(*words, DATA_MIRROR="mirror").returncode == 0
    found = (tmp_path / "raw/train.en").read_text(encoding="utf-8")
    assert found == LINES["train.en"] + LINES["valid.en"]


def test_another_number_of_pairs_than_the_public_ones_is_said(step, corpus, tmp_path):
    manifest = json.loads(corpus().read_text()) | {"pairs": {"test": 41, "train": 40}}
    (tmp_path / "small.json").write_text(json.dumps(manifest))
    words = ("fetch", tmp_path / "small.json", "--output", "raw", *PAIR)
    said = step(*words, DATA_MIRROR="mirror").stderr
    assert "WARNING: the public test has 41 pairs" in said and said.count("WARNING") == 1


def test_the_manifest_of_multi30k_is_whole():
    from fetch import read_manifest

    manifest = read_manifest("multi30k")
    patterns, languages = manifest["splits"].values(), manifest["languages"]
    names = {each.format(language=language) for each in patterns for language in languages}
    assert names == set(manifest["files"]) and len(names) == 9
    assert all(
        len(file["sha256"]) == 64 and file["size"] > 0 for file in manifest["files"].values()
    )
