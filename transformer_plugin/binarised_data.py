"""Checks folders of binarised data for missing files and for files of different binarisations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from fairseq import utils
from fairseq.data import Dictionary, data_utils

from .files import checksum
from .refusal import Refusal

_PART = 1 << 24  # ids to read at a time
CHECKSUMS = "SHA256SUMS"  # data-prep/binarise.py writes it; fairseq-preprocess does not


def check_checksums(folder: Path) -> None:
    """Compares the dictionaries and indices with the folder's ``SHA256SUMS``, if it has one.

    The ids in the data refer to one dictionary. With another one, training would run but learn
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


def shard(data: str, number: int) -> Path:
    """The folder of ``A:B`` that fairseq reads in epoch ``number``, counted from 1."""
    paths = utils.split_paths(data)
    return Path(paths[(number - 1) % len(paths)])


def check_symbols(folder: Path, split: str, dictionaries: Mapping[str, Dictionary]) -> None:
    """Looks for ids beyond the dictionary, in a folder without ``SHA256SUMS``.

    Args:
        dictionaries: the dictionaries of both languages, by language.

    Raises:
        Refusal: the data was binarised with a larger dictionary; the message names the file.
    """
    if (folder / CHECKSUMS).is_file():
        return
    for language, dictionary in dictionaries.items():
        for index in folder.glob(f"{split}*-*.{language}.idx"):
            data = data_utils.load_indexed_dataset(str(index.with_suffix("")), dictionary)
            tokens = int(data.sizes.sum()) if data is not None else 0
            path = index.with_suffix(".bin")
            largest = _largest(path, path.stat().st_mtime_ns, tokens)
            if largest >= len(dictionary):
                raise Refusal(
                    f"{path}: contains symbol {largest:,}, but the dictionary of {language} has"
                    f" {len(dictionary):,}: the data was binarised with another dictionary; prepare"
                    " it again"
                )


@functools.cache
def _largest(path: Path, changed: int, tokens: int) -> int:
    """The largest id in a file of ``tokens`` ids, last changed at that time; 0 if their width is
    unknown."""
    width = path.stat().st_size // tokens if tokens else 0
    if width not in (2, 4, 8):
        return 0
    numbers = np.memmap(path, np.uint16 if width == 2 else f"i{width}", mode="r")
    parts = (numbers[first : first + _PART] for first in range(0, len(numbers), _PART))
    return max(int(part.max()) for part in parts)


def infer_languages(folder: Path) -> tuple[str, str] | tuple[None, None]:
    """Source and target language of binarised data, from the names of its files. fairseq's function
    takes the language pt-BR for the pair of pt and BR."""
    known = [path.name[len("dict.") : -len(".txt")] for path in sorted(folder.glob("dict.*.txt"))]
    for source, target in itertools.permutations(known, 2):
        if any(folder.glob(f"*.{source}-{target}.{source}.idx")):
            return source, target
    source, target = data_utils.infer_language_pair(str(folder))
    return source, target


def check_data(data: str, source: str | None, target: str | None) -> tuple[str, str]:
    """Finds missing files before fairseq does, because its messages name no file.

    Args:
        data: folders in fairseq's form, ``A:B``; the first has the dictionaries.
        source: source language; None: inferred from the file names.
        target: target language; None: inferred.

    Returns:
        Source and target language.

    Raises:
        FileNotFoundError: a folder, its data or a dictionary is missing.
        Refusal: one of two languages is given, which fairseq would ignore; or the files are from
            different binarisations.
    """
    if (source is None) != (target is None):
        given = f"-s {source}" if source else f"-t {target}"
        raise Refusal(f"{given}: give both languages, -s and -t, or neither")
    prepare = "prepare it with recipes/prepare.sh, or with fairseq-preprocess"
    folders = [Path(path) for path in utils.split_paths(data)]
    for path in folders:
        if not path.is_dir():
            raise FileNotFoundError(f"{path}: no such data directory; {prepare}")
    first = folders[0]
    if source is None or target is None:
        source, target = infer_languages(first)
    if source is None or target is None:
        raise FileNotFoundError(
            f"{first}: no binarised data (train.SOURCE-TARGET.SOURCE.idx or similar);"
            f" {prepare}, or name the languages with -s and -t"
        )
    for language in (source, target):
        dictionary = first / f"dict.{language}.txt"
        if not dictionary.is_file():
            raise FileNotFoundError(f"{dictionary}: no such dictionary; {prepare}")
        for other in (path / dictionary.name for path in folders[1:]):
            if other.is_file() and checksum(other) != checksum(dictionary):
                raise Refusal(
                    f"{other} differs from {dictionary}, which fairseq uses for all folders:"
                    f" binarise {other.parent} with the dictionaries of {first}"
                )
    for path in folders:
        check_checksums(path)
    return source, target
