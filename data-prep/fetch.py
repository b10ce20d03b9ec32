"""Fetch a corpus into {train,valid,test}.{SOURCE,TARGET}, plain text.

`toy` is generated on the spot; any other name is a manifest in data-prep/corpora/ (or the path of
one) that lists each file's size and sha256. With DATA_MIRROR set to a folder or an address, files
are read from there instead of their public address; the checks are the same.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Any

import toy
from bad_input import BadInput, exit_cleanly
from finished_step import finish_step
from parallel_text import SPLITS, check_aligned, check_languages, read_lines

CORPORA = Path(__file__).resolve().parent / "corpora"
TIMEOUT = 60  # seconds without a byte
UNREADABLE = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


def read_manifest(corpus: str) -> dict[str, Any]:
    """The manifest of a corpus named in corpora/, or at a path that ends in .json."""
    path = Path(corpus) if corpus.endswith(".json") else CORPORA / f"{corpus}.json"
    if not path.is_file():
        known = ", ".join(["toy", *sorted(found.stem for found in CORPORA.glob("*.json"))])
        raise BadInput(f"there is no corpus '{corpus}' ({path} is missing); known: {known}")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in ("addresses", "mirror_folder", "languages", "splits", "files"):
            manifest[key]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not a manifest: {error!r}; see corpora/multi30k.json") from None
    return manifest


def addresses(manifest: dict[str, Any]) -> list[str]:
    """Where the files are, in the order to try; DATA_MIRROR, when set, is the only place."""
    mirror = os.environ.get("DATA_MIRROR", "")
    if not mirror:
        return list(manifest["addresses"])
    if "://" not in mirror:
        mirror = Path(mirror).resolve().as_uri()
    return [f"{mirror.rstrip('/')}/{manifest['mirror_folder']}/"]


def download(address: str, path: Path, size: int, sha256: str) -> None:
    """Copy the bytes at `address` to `path`; BadInput unless size and sha256 are as expected."""
    digest, received, next_report = hashlib.sha256(), 0, time.monotonic() + 5.0
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer, path.open("wb") as file:
            while block := answer.read(1 << 16):
                file.write(block)
                digest.update(block)
                received += len(block)
                if time.monotonic() >= next_report:
                    print(f"[raw] {address}: {received:,} of {size:,} bytes", file=sys.stderr)
                    next_report += 5.0
    except UNREADABLE as error:
        raise BadInput(f"{address}: cannot be read ({getattr(error, 'reason', error)})") from None
    if received != size:
        raise BadInput(f"{address}: {received:,} bytes, expected {size:,}")
    if digest.hexdigest() != sha256:
        raise BadInput(f"{address}: sha256 {digest.hexdigest()}, expected {sha256}")


def download_from_any(places: list[str], name: str, path: Path, file: dict[str, Any]) -> None:
    """Download file `name` from the first place that has exactly the expected bytes."""
    failures = []
    for place in places:
        try:
            download(place + name, path, file["size"], file["sha256"])
            return
        except BadInput as failure:
            failures.append(str(failure))
    raise BadInput(
        "; ".join(failures) + ". Try again, or set DATA_MIRROR to a folder that holds intact files"
    )


def unpack(archive: Path, path: Path, name: str) -> None:
    """Decompress a .gz to `path` and remove it; BadInput names what is wrong with it."""
    try:
        with gzip.open(archive, "rb") as packed, path.open("wb") as plain:
            while block := packed.read(1 << 20):
                plain.write(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(
            f"{name} is truncated or not a gzip file ({error}): fetch it again"
        ) from None
    archive.unlink()


def fetch(manifest: dict[str, Any], source: str, target: str, folder: Path) -> None:
    """Fill `folder` with the six files of a pair of languages."""
    for split in SPLITS:
        for language in (source, target):
            name = manifest["splits"][split].format(language=language)
            path = folder / f"{split}.{language}"
            packed = folder / f"{path.name}.gz"
            print(f"[raw] {name}", file=sys.stderr)
            download_from_any(addresses(manifest), name, packed, manifest["files"][name])
            unpack(packed, path, name)
            if split != "train":  # a bad line of train is dropped by clean.py, and counted
                for _ in read_lines(path):
                    pass
        pairs = check_aligned(folder / f"{split}.{source}", folder / f"{split}.{target}")
        print(f"[raw] {split}: {pairs:,} pairs", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", help="toy, a manifest's name in data-prep/corpora/, or its path")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument("--output", required=True, type=Path, help="folder for the six text files")
    args = parser.parse_args()
    check_languages(args.source, args.target)

    if args.corpus == "toy":
        toy.write_toy_corpus(args.output, source=args.source, target=args.target)
        return
    manifest = read_manifest(args.corpus)
    for language in (args.source, args.target):
        if language not in manifest["languages"]:
            raise BadInput(
                f"corpus {args.corpus} has no '{language}', only "
                + ", ".join(manifest["languages"])
            )
    names = [pattern.format(language=language) for pattern in manifest["splits"].values()
             for language in (args.source, args.target)]
    if missing := [name for name in names if name not in manifest["files"]]:
        raise BadInput(f"the manifest of {args.corpus} has no size and sha256 of {missing[0]}")
    files = {name: manifest["files"][name] for name in names}
    finish_step(
        args.output,
        inputs=[],
        settings={"corpus": args.corpus, "files": files},
        work=lambda folder: fetch(manifest, args.source, args.target, folder),
    )


if __name__ == "__main__":
    exit_cleanly(main)
