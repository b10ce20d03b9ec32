"""Prints one hash of the contents of files and folders: python3 recipes/fingerprint.py PATH ...

Links are followed. Logs, hidden and partial files do not count, nor do the paths themselves, so
that a run directory may move. The result is that of the sha256 sums of a folder's files, as
sha256sum prints them in the order of their names.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def sums(path: Path) -> Iterator[str]:
    """A line for a file, or for each of a folder's."""
    if not path.is_dir():
        yield f"{_sha256(path)}  -\n"
        return
    named = ((os.fsencode(f"./{file.relative_to(path)}"), file) for file in _files(path, ()))
    for name, file in sorted(named):
        yield f"{_sha256(file)}  {os.fsdecode(name)}\n"


def _files(folder: Path, above: tuple[tuple[int, int], ...]) -> Iterator[Path]:
    """Files that count, at any depth. A link to a folder that it lies in is not followed."""
    status = folder.stat()
    this = (status.st_dev, status.st_ino)
    if this in above:
        return
    for path in folder.iterdir():
        if path.is_dir():
            yield from _files(path, (*above, this))
        elif path.name[0] != "." and path.suffix not in (".log", ".partial"):
            if path.is_file():
                yield path
            elif path.is_symlink():
                raise FileNotFoundError(2, "the link leads nowhere", str(path))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    digest = hashlib.sha256()
    for path in map(Path, sys.argv[1:]):
        if not path.exists():
            sys.exit(f"{path} is missing: it is an input of this stage; run the stages before it"
                     " first")
        try:
            for line in sums(path):
                digest.update(os.fsencode(line))
        except OSError as error:
            sys.exit(f"{error.filename or path}: {error.strerror}; it is an input of this stage")
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
