"""Where the files of a corpus come from: its public addresses, or a mirror.

DATA_MIRROR, a folder or an address, is then the only place. In it, file `wmt13/NAME` is looked for
as CORPUS/NAME, wmt13/NAME and NAME. A folder's files are read where they are, and a folder may hold
a SHA256SUMS (lines of `sha256  PATH`), which counts instead of the manifest's sizes and checksums:
so a mirror can hold another edition of a file, and says so.
"""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.parse
import urllib.request
from pathlib import Path, PurePosixPath
from typing import Any

from bad_input import BadInput
from download import Expected, download, first_that_works
from only_one import only_one

ADVICE = ("Try again, or set DATA_MIRROR to a folder that holds intact files (one that holds other "
          "editions lists them in a SHA256SUMS)")


def obtain(manifest: dict[str, Any], file: str, downloads: Path) -> Path:
    """A local path of the file, whole and checked; BadInput when no place has it."""
    expected = Expected.of(manifest["files"][file])
    mirror = os.environ.get("DATA_MIRROR", "")
    if not mirror:
        places = [(address, file) for address in manifest["addresses"]]
    else:
        base = mirror if "://" in mirror else Path(mirror).resolve().as_uri()
        name = PurePosixPath(file).name
        names = dict.fromkeys((f"{manifest['mirror_folder']}/{name}", file, name))
        places = [(base.rstrip("/") + "/", name) for name in names]
        if base.startswith("file:"):  # those that exist, or the first for the message
            places = [place for place in places if _local(*place).is_file()] or places[:1]
    # WMT's archives, in folders of their own, serve several corpora.
    path = downloads / (file if "/" in file else f"{manifest['mirror_folder']}/{file}")
    return first_that_works(
        [lambda base=base, name=name: _from(base, name, path, expected)
         for base, name in places],
        ADVICE,
    )


def _local(base: str, name: str) -> Path:
    return Path(urllib.request.url2pathname(urllib.parse.urlsplit(base).path)) / name


def _from(base: str, name: str, path: Path, expected: Expected) -> Path:
    """The file `name` below `base`: in place when that is a folder, else downloaded to `path`."""
    if base.startswith("file:"):
        local = _local(base, name)
        if not local.is_file():
            raise BadInput(f"{local} is missing")
        own = _own_checksums(_local(base, "SHA256SUMS")).get(name)
        if own is not None and own != expected.sha256:
            print(f"[raw] {local}: checked by the mirror's own SHA256SUMS", file=sys.stderr)
            expected = Expected(sha256=own)
        expected.check(local, str(local))
        _say_if_unknown(local, expected)
        return local
    path.parent.mkdir(parents=True, exist_ok=True)
    with only_one(path.with_name(f".{path.name}.lock"), f"downloads {path.name}"):
        if path.is_file():
            try:
                expected.check(path, str(path))
                return path
            except BadInput as failure:
                print(f"[raw] {failure}: fetched again", file=sys.stderr)
        download(base + name, path, expected)
    _say_if_unknown(path, expected)
    return path


def _own_checksums(path: Path) -> dict[str, str]:
    """{file: sha256} of a SHA256SUMS; {} when there is none."""
    if not path.is_file():
        return {}
    sums = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition(" ")
        sums[name.lstrip(" *").removeprefix("./")] = digest
    return sums


def _say_if_unknown(path: Path, expected: Expected) -> None:
    """For a file whose checksum nobody has published: what it is, for one's own records."""
    if expected.sha256 or expected.md5:
        return
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    print(f"[raw] {path.name}: no checksum is known; this one has sha256 {digest}",
          file=sys.stderr)
