"""Whether folders of binarised data are there, and still hold what was binarised together."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fairseq import utils
from fairseq.data import data_utils

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


def check_data(data: str, source: str | None, target: str | None) -> None:
    """Finds what is missing before fairseq does, whose messages name no file.

    Args:
        data: folders as fairseq takes them, ``A:B``.
        source: its language; None: told from the file names, as ``target``.

    Raises:
        FileNotFoundError: a folder, its data or a dictionary is missing.
        SystemExit: the files are not of one binarisation.
    """
    prepare = "prepare it with recipes/prepare.sh, or with fairseq-preprocess"
    for path in map(Path, utils.split_paths(data)):
        if not path.is_dir():
            raise FileNotFoundError(f"{path}: no such data directory; {prepare}")
        languages = (source, target)
        if None in languages:
            languages = data_utils.infer_language_pair(str(path))
        if None in languages:
            raise FileNotFoundError(
                f"{path}: no binarised data (train.SOURCE-TARGET.SOURCE.idx or the like);"
                f" {prepare}, or name the languages by -s and -t"
            )
        for language in languages:
            dictionary = path / f"dict.{language}.txt"
            if not dictionary.is_file():
                raise FileNotFoundError(f"{dictionary}: no such dictionary; {prepare}")
        try:
            check_checksums(path)
        except ValueError as error:
            raise SystemExit(str(error)) from None
