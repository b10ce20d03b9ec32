"""Describes binarised data and detects damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, infer_dataset_impl

from ..binarised_data import check_data
from ..config import MAX_POSITIONS
from ..dictionary_file import load_dictionary
from ..refusal import Refusal
from .finding import NOTE, OK, PROBLEM, Finding

SPLITS = {
    "train": "training needs it",
    "valid": "training validates on it, unless --disable-validation is given",
    "test": "fairseq-generate translates it",
}
AGAIN = "prepare the data again: recipes/prepare.sh, or fairseq-preprocess"
_MANY_UNKNOWN = 0.01


class DataError(ValueError):
    """The data is damaged or of another kind."""


def find_in_data(folder: Path) -> Iterator[Finding]:
    """Checks a folder of binarised data: its dictionaries and every sentence."""
    try:
        source, target = check_data(str(folder), None, None)
    except (FileNotFoundError, Refusal) as error:
        yield Finding(PROBLEM, str(error))
        return
    dictionaries = {}
    for language in (source, target):
        path = folder / f"dict.{language}.txt"
        try:
            dictionaries[language] = load_dictionary(path)
        except Refusal as error:
            yield Finding(PROBLEM, str(error))
            return
    yield _joint(folder, dictionaries)
    for split, needed in SPLITS.items():
        prefix = next(
            (
                folder / f"{split}.{pair}"
                for pair in (f"{source}-{target}", f"{target}-{source}")
                if any(folder.glob(f"{split}.{pair}.*"))
            ),
            None,
        )
        if prefix is None:
            yield Finding(NOTE, f"{folder}: no {split} set; {needed}")
            continue
        try:
            yield from _find_in_split(prefix, dictionaries)
        except DataError as error:
            yield Finding(PROBLEM, str(error), AGAIN)


def _joint(folder: Path, dictionaries: dict[str, Dictionary]) -> Finding:
    (source, ours), (target, theirs) = dictionaries.items()
    if ours.symbols == theirs.symbols:
        text = f"one dictionary of {len(ours):,} symbols: the embeddings are shared (3.4)"
        return Finding(OK, f"{folder}: {source} and {target}, {text}")
    text = f"two dictionaries of {len(ours):,} and {len(theirs):,} symbols"
    remedy = "train with --untie-source-embedding, or prepare with a joint vocabulary"
    return Finding(NOTE, f"{folder}: {source} and {target}, {text}", remedy)


def _find_in_split(prefix: Path, dictionaries: dict[str, Dictionary]) -> Iterator[Finding]:
    sizes = {}
    for language, dictionary in dictionaries.items():
        side = prefix.with_name(f"{prefix.name}.{language}")
        sizes[language], unknown = _read(side, dictionary)
        if unknown > _MANY_UNKNOWN:
            yield Finding(
                NOTE,
                f"{side}: {100 * unknown:.1f} % of its words are not in the dictionary",
                "check that it was split with the subword model of the training data",
            )
    (source, lengths), (target, others) = sizes.items()
    if len(lengths) != len(others):
        counts = f"{len(lengths):,} sentences in {source}, {len(others):,} in {target}"
        raise DataError(f"{prefix}: {counts}; they must be translations of each other")
    tokens = f"{lengths.sum():,} and {others.sum():,} tokens"
    yield Finding(OK, f"{prefix}: {len(lengths):,} pairs, {tokens}")
    long = int((np.maximum(lengths, others) > MAX_POSITIONS).sum())
    if long:
        text = f"{prefix}: {long:,} pairs are longer than {MAX_POSITIONS:,} tokens"
        remedy = "raise --max-source-positions and --max-target-positions"
        if prefix.name.startswith("train"):
            yield Finding(NOTE, f"{text}; training skips them", f"{remedy} to keep them")
        elif prefix.name.startswith("valid"):
            skip = "--skip-invalid-size-inputs-valid-test"
            yield Finding(NOTE, f"{text}; training stops at them", f"{remedy}, or add {skip}")


def _read(side: Path, dictionary: Dictionary) -> tuple[np.ndarray, float]:
    """The lengths of one side's sentences, and its share of unknown words."""
    index, data = (side.with_name(f"{side.name}.{end}") for end in ("idx", "bin"))
    for path in (index, data):
        if not path.is_file():
            raise DataError(f"{path} is missing")
    if infer_dataset_impl(str(side)) != "mmap":
        raise DataError(f"{index}: not an index of --dataset-impl mmap; others are not checked")
    try:
        found = MMapIndexedDataset.Index(str(index))
    except Exception as error:  # a damaged header can raise anything
        raise DataError(f"{index}: damaged or cut off ({error or type(error).__name__})") from None
    sizes = np.array(found.sizes)
    expected = int(sizes.sum()) * np.dtype(found.dtype).itemsize
    if data.stat().st_size != expected:
        raise DataError(f"{data}: {data.stat().st_size:,} bytes, but its index says {expected:,}")
    if not expected:
        raise DataError(f"{data}: no sentences")
    words = np.memmap(data, dtype=found.dtype, mode="r")
    least, most = int(words.min()), int(words.max())
    if least < 0 or most >= len(dictionary):
        raise DataError(
            f"{data}: word number {least if least < 0 else most}, but its dictionary has"
            f" {len(dictionary):,} symbols: it was binarised with another dictionary"
        )
    if (words[sizes.cumsum() - 1] != dictionary.eos()).any():
        raise DataError(f"{data}: some sentences do not end with </s>")
    return sizes, float((words == dictionary.unk()).mean())
