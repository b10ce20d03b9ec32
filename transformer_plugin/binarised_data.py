"""Checks folders of binarised data for missing files and for files of different binarisations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from fairseq import utils
from fairseq.data import Dictionary, data_utils

from .files import checksum
from .refusal import Refusal

_PART = 1 << 24  # numbers to read at a time
CHECKSUMS = "SHA256SUMS"  # data-prep/binarise.py writes it; fairseq-preprocess does not


def check_checksums(folder: Path) -> None:
    """Compares the dictionaries and indices with the folder's ``SHA256SUMS``, if it has one.

    The numbers in the data refer to one dictionary. With another one, training would run but learn
    nonsense.

    Raises:
        Refusal: a file is missing or has changed; the message names it.
    """
    sums = folder / CHECKSUMS
    if not sums.is_file():
        return
    for line in sums.read_text(encoding="utf-8").splitlines():
        expected, _, name = line.partition("  ")
        path = folder / name
        if path.suffix not in (".txt", ".idx"):  # the .bin files would take too long
            continue
        if not path.is_file():
            raise Refusal(f"{path} is missing; prepare the data again (recipes/prepare.sh)")
        if checksum(path) != expected:
            raise Refusal(
                f"{path} does not belong to the other files of {folder}: the data was binarised"
                " with another dictionary; prepare it again (recipes/prepare.sh)"
            )


def check_symbols(folder: str, split: str, dictionaries: Mapping[str, Dictionary]) -> None:
    """Looks for numbers beyond the dictionary, in folders without ``SHA256SUMS``.

    Args:
        folder: folders in fairseq's form, ``A:B``.
        dictionaries: the dictionaries of both languages, by language.

    Raises:
        Refusal: the data was binarised with a larger dictionary; the message names the file.
    """
    for path in map(Path, utils.split_paths(folder)):
        if (path / CHECKSUMS).is_file():
            continue
        for language, dictionary in dictionaries.items():
            for index in path.glob(f"{split}*-*.{language}.idx"):
                data = data_utils.load_indexed_dataset(str(index.with_suffix("")), dictionary)
                tokens = int(data.sizes.sum()) if data is not None else 0
                largest = _largest(index.with_suffix(".bin"), tokens)
                if largest >= len(dictionary):
                    raise Refusal(
                        f"{index.with_suffix('.bin')}: contains symbol {largest:,}, but"
                        f" {path}/dict.{language}.txt has {len(dictionary):,}: the data was"
                        " binarised with another dictionary; prepare it again"
                    )


def _largest(path: Path, tokens: int) -> int:
    """The largest number in a file of ``tokens`` integers; 0 if their width is unknown."""
    width = path.stat().st_size // tokens if tokens else 0
    if width not in (2, 4, 8):
        return 0
    numbers = np.memmap(path, np.uint16 if width == 2 else f"i{width}", mode="r")
    parts = (numbers[first : first + _PART] for first in range(0, len(numbers), _PART))
    return max(int(part.max()) for part in parts)


def check_data(data: str, source: str | None, target: str | None) -> None:
    """Finds missing files before fairseq does, because its messages name no file.

    Args:
        data: folders in fairseq's form, ``A:B``.
        source: source language; None: inferred from the file names.
        target: target language; None: inferred.

    Raises:
        FileNotFoundError: a folder, its data or a dictionary is missing.
        Refusal: one of two languages is given, which fairseq would ignore; or the files are from
            different binarisations.
    """
    if (source is None) != (target is None):
        given = f"-s {source}" if source else f"-t {target}"
        raise Refusal(f"{given}: give both languages, -s and -t, or neither")
    prepare = "prepare it with recipes/prepare.sh, or with fairseq-preprocess"
    for path in map(Path, utils.split_paths(data)):
        if not path.is_dir():
            raise FileNotFoundError(f"{path}: no such data directory; {prepare}")
        languages = (source, target)
        if None in languages:
            languages = data_utils.infer_language_pair(str(path))
        if None in languages:
            raise FileNotFoundError(
                f"{path}: no binarised data (train.SOURCE-TARGET.SOURCE.idx or similar);"
                f" {prepare}, or name the languages with -s and -t"
            )
        for language in languages:
            dictionary = path / f"dict.{language}.txt"
            if not dictionary.is_file():
                raise FileNotFoundError(f"{dictionary}: no such dictionary; {prepare}")
        check_checksums(path)
