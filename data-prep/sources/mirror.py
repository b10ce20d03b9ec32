"""The files of a corpus, from its public addresses or from a mirror.

DATA_MIRROR, a folder or an address, replaces the public addresses. File `wmt13/NAME` is looked up
there as CORPUS/NAME, wmt13/NAME and NAME. The files of a folder are read in place. A folder with
another edition of a file lists it in its SHA256SUMS (lines of `sha256  PATH`), which replaces the
manifest's sizes and checksums.
"""

from __future__ import annotations

import math
import os
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

from sources.checksums import Expected, read_checksums
from sources.download import download, first_that_works
from steps.errors import BadInput
from transformer_plugin.files import checksum
from transformer_plugin.lock import LockedError, file_lock

ADVICE = (
    "Try again, or set DATA_MIRROR to a folder that holds intact files (one that holds other "
    "editions lists them in a SHA256SUMS)"
)


def fetch_file(manifest: dict[str, Any], file: str, downloads: Path) -> Path:
    """A local path of the file, complete and checked; BadInput if it is not found."""
    expected = Expected.of(manifest["files"][file])
    # Several corpora use WMT's archives, which have their own folders.
    path = downloads / (file if "/" in file else f"{manifest['mirror_folder']}/{file}")
    return first_that_works(
        [
            lambda base=base, name=name: _fetch_from(base, name, path, expected)
            for base, name in _places(manifest, file)
        ],
        ADVICE,
    )


def other_editions(
    manifest: dict[str, Any], files: Iterable[str], before: dict[str, str]
) -> dict[str, str]:
    """The sha256 of those files in the folder DATA_MIRROR that may not be the public ones: its
    SHA256SUMS lists another edition, or the public one's checksum is not known.

    Args:
        before: what it returned when the corpus was last fetched. A file whose public checksum is
            not known counts as unchanged while no folder has it.
    """
    found = {}
    for file in files:
        expected = Expected.of(manifest["files"][file])
        base, name = _places(manifest, file)[0]
        if not base.startswith("file:") or not _local(base, name).is_file():
            if expected == Expected() and file in before:
                found[file] = before[file]
            continue
        own = read_checksums(_local(base, "SHA256SUMS")).get(name)
        if own is None and expected == Expected():
            own = checksum(_local(base, name))
        if own is not None and own != expected.sha256:
            found[file] = own
    return found


def _places(manifest: dict[str, Any], file: str) -> list[tuple[str, str]]:
    """Where to look for a file: addresses that end in a slash, and its name there."""
    mirror = os.environ.get("DATA_MIRROR", "")
    if not mirror:
        return [(address, file) for address in manifest["addresses"]]
    base = mirror if "://" in mirror else Path(mirror).resolve().as_uri()
    name = PurePosixPath(file).name
    names = dict.fromkeys((f"{manifest['mirror_folder']}/{name}", file, name))
    places = [(base.rstrip("/") + "/", name) for name in names]
    if base.startswith("file:"):  # those with the file, or the first for the message
        return [place for place in places if _local(*place).is_file()] or places[:1]
    return places


def _local(base: str, name: str) -> Path:
    return Path(urllib.request.url2pathname(urllib.parse.urlsplit(base).path)) / name


def _fetch_from(base: str, name: str, path: Path, expected: Expected) -> Path:
    """The file `name` below `base`: in place if that is a folder, else downloaded to `path`, after
    any other download to it has ended."""
    if base.startswith("file:"):
        local = _local(base, name)
        if not local.is_file():
            raise BadInput(f"{local} is missing")
        own = read_checksums(_local(base, "SHA256SUMS")).get(name)
        if own is not None and own != expected.sha256:
            print(f"[raw] {local}: checked by the mirror's own SHA256SUMS", file=sys.stderr)
            expected = Expected(sha256=own)
        expected.check(local, str(local))
        expected.report_unknown(local)
        return local
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, holder = path.with_name(f".{path.name}.lock"), f"the download of {path.name}"
    with ExitStack() as locks:
        try:
            locks.enter_context(file_lock(lock, holder, patience=0))
        except LockedError as error:
            print(f"[raw] waiting: {error}", file=sys.stderr)
            locks.enter_context(file_lock(lock, holder, patience=math.inf))
        if path.is_file():
            try:
                expected.check(path, str(path))
                return path
            except BadInput as failure:
                print(f"[raw] {failure}: fetching it again", file=sys.stderr)
        download(base + name, path, expected)
    expected.report_unknown(path)
    return path
