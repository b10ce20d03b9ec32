"""Split CLEAN/{train,valid,test}.{SOURCE,TARGET} into subwords and write them as binary data for
fairseq-train and fairseq-generate. There is one dictionary for both languages, or with
--target-model one for each.

The files are, byte for byte, those of `fairseq-preprocess` on the same subwords as text (with
--joined-dictionary for one dictionary), and their SHA256SUMS. Subwords are never written as text.
A dictionary has the pieces of train by frequency, so their ids are known only after train has
been read; until then sentences are stored on disk with the model's own ids.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from steps.errors import exit_cleanly
from steps.progress import progress
from steps.step import run_step
from steps.workers import add_workers, line_blocks, ordered_map
from text.encoders import Encoder, load
from text.fairseq_files import build_dictionary, ids_in, write_index
from text.model_files import model_files
from text.parallel import SPLITS, check_aligned, check_languages, side_paths
from transformer_plugin.files import checksum

CHECKSUMS = "SHA256SUMS"  # lets the plugin's task detect the dictionary of other data
CHUNK = 1 << 22  # ids in memory


def encode_block(block: bytes, model: Path) -> tuple[bytes, bytes, np.ndarray]:
    """The ids of a block of lines, the lengths of its lines, and the counts of the ids."""
    encoder = load(model)
    ids, sizes = encoder.lines(block)
    counts = np.bincount(ids, minlength=len(encoder.pieces) + 1)
    return ids.tobytes(), sizes.tobytes(), counts


def encode(text: Path, model: Path, folder: Path, lines: int, workers: int) -> np.ndarray:
    """Write .ids and .sizes of a text into `folder`; returns the counts of the ids."""
    total = np.zeros(len(load(model).pieces) + 1, dtype=np.int64)
    with (
        (folder / f"{text.name}.ids").open("wb") as ids_file,
        (folder / f"{text.name}.sizes").open("wb") as sizes_file,
        progress(f"[data-bin] {text.name}", lines, "lines") as bar,
    ):
        for ids, sizes, counts in ordered_map(
            partial(encode_block, model=model), line_blocks(text), workers
        ):
            ids_file.write(ids)
            sizes_file.write(sizes)
            total += counts
            bar.update(len(sizes) // 4)
    return total


def chunks(path: Path, dtype: np.dtype) -> Iterator[np.ndarray]:
    """The ids of a file, CHUNK at a time."""
    with path.open("rb") as file:
        while len(chunk := np.fromfile(file, dtype, CHUNK)):
            yield chunk


def convert(
    name: str, prefix: str, table: np.ndarray, encoder: Encoder, folder: Path
) -> tuple[int, int]:
    """Convert .ids and .sizes to .bin and .idx; returns the numbers of unknown and of all subwords.

    Args:
        table: the id in the dictionary for each id of the model.
    """
    unknown = total = 0
    ids, sizes = folder / f"{name}.ids", folder / f"{name}.sizes"
    with (folder / f"{prefix}.bin").open("wb") as file:
        for chunk in chunks(ids, encoder.dtype):
            converted = table[chunk]
            unknown += int(np.count_nonzero(converted == table[encoder.unknown]))
            total += len(converted)
            file.write(converted)
    write_index(folder / f"{prefix}.idx", sizes, table.dtype)
    ids.unlink()
    sizes.unlink()
    return unknown, total


def binarise(
    texts: Path,
    models: Sequence[Path],
    source: str,
    target: str,
    workers: int,
    folder: Path,
    dictionaries: Path | None = None,
) -> None:
    """Fill `folder` with the dictionaries and the binary data of the six texts.

    Args:
        models: one for both sides, or the source's and the target's.
        dictionaries: folder with the dictionaries of another run, to use instead of new ones.
    """
    model_of = dict(zip((source, target), (models[0], models[-1]), strict=True))
    if dictionaries:
        from transformer_plugin.dictionary_file import load_dictionary  # slow: it imports torch

        known = {each: load_dictionary(dictionaries / f"dict.{each}.txt") for each in model_of}
    counts = [np.zeros(len(load(model).pieces) + 1, dtype=np.int64) for model in models]
    counts_of = dict(zip(model_of, (counts[0], counts[-1]), strict=True))
    for split in SPLITS:
        lines = check_aligned(*(texts / f"{split}.{language}" for language in (source, target)))
        for language, model in model_of.items():
            found = encode(texts / f"{split}.{language}", model, folder, lines, workers)
            if split == "train":
                counts_of[language] += found
    tables = {}
    for language, model in model_of.items():
        pieces, total = load(model).pieces, counts_of[language][:-1]
        if dictionaries:
            dictionary = known[language]
            tables[language] = ids_in(dictionary, pieces)
        else:
            total[load(model).unknown] = 0
            dictionary, tables[language] = build_dictionary(pieces, total)
        dictionary.save(str(folder / f"dict.{language}.txt"))
        print(f"[data-bin] dictionary of {language}: {len(dictionary):,} types", file=sys.stderr)
    unknown = {}
    for split in SPLITS:
        for language, model in model_of.items():
            unknown[f"{split}.{language}"] = convert(
                f"{split}.{language}",
                f"{split}.{source}-{target}.{language}",
                tables[language],
                load(model),
                folder,
            )
    found = ", ".join(
        f"{name} {count:,} ({count / total:.1%})"
        for name, (count, total) in unknown.items()
        if count
    )
    if found:
        print(f"[data-bin] unknown subwords: {found}", file=sys.stderr)
    files = sorted(path for path in folder.iterdir() if path.suffix in (".txt", ".bin", ".idx"))
    text = "".join(f"{checksum(path)}  {path.name}\n" for path in files)
    (folder / CHECKSUMS).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, type=Path, help="folder of the clean text")
    parser.add_argument("--model", required=True, type=Path, help="folder of subwords.py")
    parser.add_argument(
        "--target-model", type=Path, help="for the target side; default: --model and one dictionary"
    )
    parser.add_argument(
        "--dictionaries", type=Path, help="data-bin of another run, whose dictionaries to use"
    )
    parser.add_argument("--output", required=True, type=Path, help="folder for the binary data")
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    add_workers(parser)
    parser.add_argument(
        "--run", type=Path, help="do not replace --output while this folder has checkpoints"
    )
    args = parser.parse_args()
    check_languages(args.source, args.target)
    models = [args.model, *([args.target_model] if args.target_model else [])]
    settings = {"source": args.source, "target": args.target}
    if args.target_model:  # its files may have the same names as the other's
        settings["target_model"] = " ".join(map(checksum, model_files(args.target_model)))
    languages = (args.source, args.target)
    inputs = [*side_paths(args.input, languages), *model_files(args.model)]
    if args.dictionaries:
        inputs += [args.dictionaries / f"dict.{language}.txt" for language in languages]
    run_step(
        args.output,
        inputs=inputs,
        reads=model_files(args.target_model) if args.target_model else [],
        settings=settings,
        work=lambda folder: binarise(
            args.input, models, *languages, args.workers, folder, args.dictionaries
        ),
        needed="dict.*.txt",
        run=args.run,
    )


if __name__ == "__main__":
    exit_cleanly(main)
