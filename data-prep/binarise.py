"""Split CLEAN/{train,valid,test}.{SOURCE,TARGET} into subwords and write them as fairseq's binary
data, one dictionary for both languages: what fairseq-train and fairseq-generate read.

The files are those that `fairseq-preprocess --joined-dictionary` makes of the same subwords as
text, byte for byte, and their SHA256SUMS; no text is written and read again on the way. The
dictionary holds the pieces that train has, so their order is known only at its end; until then,
sentences wait on the disk in the model's own numbers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from bad_input import BadInput, exit_cleanly
from encoders import Encoder, load, model_files
from fairseq_files import joined_dictionary, write_index
from finished_step import finish_step, sha256
from parallel_blocks import all_cores, in_order, line_blocks
from parallel_text import SPLITS, check_aligned, check_languages, side_paths
from progress import Progress

CHECKSUMS = "SHA256SUMS"  # by which the plugin's task finds a dictionary of other data
CHUNK = 1 << 22  # numbers that are converted at a time


def encode_block(block: bytes, model: Path) -> tuple[bytes, bytes, np.ndarray]:
    """The numbers of a block of lines, its lengths, and how often each number occurs."""
    encoder = load(model)
    numbers, sizes = encoder.lines(block)
    counts = np.bincount(numbers, minlength=len(encoder.pieces) + 1)
    return numbers.tobytes(), sizes.tobytes(), counts


def encode(text: Path, model: Path, folder: Path, lines: int, workers: int) -> np.ndarray:
    """Write .numbers and .sizes of a text into `folder`; how often each number occurs."""
    total = np.zeros(len(load(model).pieces) + 1, dtype=np.int64)
    progress = Progress(f"[data-bin] {text.name}", lines, "lines")
    with ((folder / f"{text.name}.numbers").open("wb") as numbers_file,
          (folder / f"{text.name}.sizes").open("wb") as sizes_file):
        for numbers, sizes, counts in in_order(partial(encode_block, model=model),
                                               line_blocks(text), workers):
            numbers_file.write(numbers)
            sizes_file.write(sizes)
            total += counts
            progress.add(len(sizes) // 4)
    return total


def chunks(path: Path, dtype: np.dtype) -> Iterator[np.ndarray]:
    """The numbers of a file, some at a time."""
    with path.open("rb") as file:
        while len(chunk := np.fromfile(file, dtype, CHUNK)):
            yield chunk


def convert(name: str, prefix: str, table: np.ndarray, encoder: Encoder, folder: Path) -> int:
    """Turn .numbers and .sizes into .bin and .idx; how many words are unknown."""
    unknown = 0
    numbers, sizes = folder / f"{name}.numbers", folder / f"{name}.sizes"
    with (folder / f"{prefix}.bin").open("wb") as file:
        for chunk in chunks(numbers, encoder.dtype):
            converted = table[chunk]
            unknown += int(np.count_nonzero(converted == table[encoder.unknown]))
            converted.tofile(file)
    write_index(folder / f"{prefix}.idx", sizes, table.dtype)
    numbers.unlink()
    sizes.unlink()
    return unknown


def binarise(
    texts: Path, model: Path, source: str, target: str, workers: int, folder: Path
) -> None:
    """Fill `folder` with the dictionary and the binary data of the six texts."""
    encoder = load(model)
    counts = np.zeros(len(encoder.pieces) + 1, dtype=np.int64)
    for split in SPLITS:
        sides = [texts / f"{split}.{language}" for language in (source, target)]
        lines = check_aligned(*sides)
        for side in sides:
            found = encode(side, model, folder, lines, workers)
            if split == "train":
                counts += found
    counts[encoder.unknown] = 0
    dictionary, table = joined_dictionary(encoder.pieces, counts[:-1])
    for language in (source, target):
        dictionary.save(str(folder / f"dict.{language}.txt"))
    print(f"[data-bin] dictionary: {len(dictionary):,} types", file=sys.stderr)
    for split in SPLITS:
        for language in (source, target):
            unknown = convert(f"{split}.{language}", f"{split}.{source}-{target}.{language}",
                              table, encoder, folder)
            print(f"[data-bin] {split}.{language}: {unknown:,} unknown subwords", file=sys.stderr)
    files = sorted(path for path in folder.iterdir() if path.suffix in (".txt", ".bin", ".idx"))
    text = "".join(f"{sha256(path)}  {path.name}\n" for path in files)
    (folder / CHECKSUMS).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--input", required=True, type=Path, help="folder of the clean text")
    parser.add_argument("--model", required=True, type=Path, help="folder of subwords.py")
    parser.add_argument("--output", required=True, type=Path, help="folder for the binary data")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument("--workers", type=int, default=all_cores(),
                        help="processes (default: one a core)")
    args = parser.parse_args()
    check_languages(args.source, args.target)
    if args.workers < 1:
        raise BadInput("expected --workers of at least 1")
    finish_step(
        args.output,
        inputs=[*side_paths(args.input, (args.source, args.target)), *model_files(args.model)],
        settings={"source": args.source, "target": args.target},
        work=lambda folder: binarise(
            args.input, args.model, args.source, args.target, args.workers, folder
        ),
    )


if __name__ == "__main__":
    exit_cleanly(main)
