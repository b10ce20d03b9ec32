"""Whether a folder of binarised data still holds what was binarised together."""

from __future__ import annotations

import hashlib
from pathlib import Path

CHECKSUMS = "SHA256SUMS"  # data-prep/binarise.py writes it; fairseq-preprocess does not


def check_checksums(folder: Path) -> None:
    """Compares the dictionaries and indices with the folder's ``SHA256SUMS``, if it has one.

    The numbers in the data mean words of one dictionary only: with another, training would run,
    and learn nonsense.

    Raises:
        ValueError: a file is missing or another one; names it.
    """
    sums = folder / CHECKSUMS
    if not sums.is_file():
        return
    for line in sums.read_text(encoding="utf-8").splitlines():
        expected, _, name = line.partition("  ")
        path = folder / name
        if path.suffix not in (".txt", ".idx"):  # to hash the text itself takes too long
            continue
        if not path.is_file():
            raise ValueError(f"{path} is missing; prepare the data again (recipes/prepare.sh)")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise ValueError(
                f"{path} is not the file that was written with the others of {folder}: the data"
                " was binarised with another dictionary; prepare it again (recipes/prepare.sh)"
            )
