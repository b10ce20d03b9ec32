"""fairseq's dictionary and the index of its binary data (MMapIndexedDataset)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steps.errors import BadInput

if TYPE_CHECKING:
    from fairseq.data import Dictionary

MULTIPLE = 8  # to which fairseq-preprocess pads the size of the dictionary


def build_dictionary(pieces: list[str], counts: np.ndarray) -> tuple[Dictionary, np.ndarray]:
    """The dictionary of the pieces that occur; and the id in it of each piece, followed by that of
    the end of sentence.

    A piece that never occurs gets the id of the unknown word. The ids have the type that
    fairseq-preprocess would choose. BadInput if a piece is one of fairseq's special symbols: a
    "</s>" would end the sentence.
    """
    from fairseq.data import Dictionary  # slow: it imports torch
    from fairseq.data.indexed_dataset import best_fitting_int_dtype

    dictionary = Dictionary()
    special = set(dictionary.symbols)
    for piece, count in zip(pieces, counts.tolist(), strict=True):
        if count and piece in special:
            raise BadInput(
                f"the subword model has the piece '{piece}', a special symbol of "
                "fairseq: learn it again with data-prep/subwords.py"
            )
        if count:
            dictionary.add_symbol(piece, n=count)
    dictionary.finalize(padding_factor=MULTIPLE)
    table = [
        dictionary.index(piece) if count else dictionary.unk()
        for piece, count in zip(pieces, counts.tolist(), strict=True)
    ]
    return dictionary, np.array([*table, dictionary.eos()], best_fitting_int_dtype(len(dictionary)))


def ids_in(dictionary: Dictionary, pieces: list[str]) -> np.ndarray:
    """The id of each piece in a dictionary, as ``build_dictionary`` returns them."""
    from fairseq.data.indexed_dataset import best_fitting_int_dtype  # slow: it imports torch

    special = set(dictionary.symbols[: dictionary.nspecial])
    table = [dictionary.unk() if p in special else dictionary.index(p) for p in pieces]
    return np.array([*table, dictionary.eos()], best_fitting_int_dtype(len(dictionary)))


def write_index(path: Path, sizes: Path, dtype: np.dtype) -> None:
    """Write NAME.idx from a file of int32 lengths; `dtype` is that of NAME.bin.

    fairseq's own writer keeps all lengths and offsets as Python numbers: 1.5 GB for 36 million.
    """
    from fairseq.data.indexed_dataset import MMapIndexedDataset, _dtype_header_code

    lengths = np.memmap(sizes, np.int32, "r")
    with path.open("wb") as file:
        file.write(MMapIndexedDataset.Index._HDR_MAGIC)
        file.write(struct.pack("<QBQ", 1, _dtype_header_code(dtype.type), len(lengths)))
        file.write(lengths)
        place = 0
        for start in range(0, len(lengths), 1 << 20):
            ends = place + np.cumsum(lengths[start : start + (1 << 20)], dtype=np.int64)
            starts = np.concatenate([[place], ends[:-1]])
            file.write((starts * dtype.itemsize).astype(np.int64))
            place = int(ends[-1])
