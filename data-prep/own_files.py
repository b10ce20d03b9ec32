"""Parallel files of one's own as a corpus: PREFIX.LANGUAGE or PREFIX.LANGUAGE.gz.

They are taken whole or not at all: a public corpus is known to hold broken lines, which clean.py
drops and counts, but in one's own file one is a sign that something went wrong.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from bad_input import BadInput
from finished_step import finish_step, sha256
from line_faults import LONGEST, fault, faultless
from parallel_text import SPLITS
from progress import Progress

BLOCK = 1 << 20  # bytes


def resolve(prefixes: str, split: str, language: str) -> list[Path]:
    """The files of one side of a split; BadInput when one is missing."""
    if not prefixes:
        raise BadInput(
            f"--{split} is missing: files of your own are given for train, valid and test "
            "(data-prep/split.py makes three of one)"
        )
    paths = []
    for prefix in prefixes.split(","):
        plain, packed = Path(f"{prefix}.{language}"), Path(f"{prefix}.{language}.gz")
        if not plain.is_file() and not packed.is_file():
            raise BadInput(f"there is neither {plain} nor {packed}: --{split} is the part of the "
                           "name before the language")
        paths.append(plain if plain.is_file() else packed)
    return paths


def blocks(path: Path) -> Iterator[bytes]:
    """The uncompressed bytes of a file in pieces that end with a line (all but the last).

    A piece may also be the beginning of a line that is too long, so that it is never read whole.
    """
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        rest = b""
        try:
            while block := stream.read(BLOCK):
                lines, end, tail = block.rpartition(b"\n")
                if end:
                    yield rest + lines + end
                    rest = tail
                else:
                    rest += block
                if len(rest) > LONGEST:
                    yield rest
                    rest = b""
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadInput(f"{path} is truncated or not a gzip file ({error})") from None
        if rest:
            yield rest


def copy_checked(path: Path, output: Path) -> int:
    """Add the lines of `path` to `output`; their number. BadInput names the first bad line."""
    progress = Progress(f"[raw] {path}", None, "lines")
    with output.open("ab") as file:
        for block in blocks(path):
            if not faultless(block, first=not progress.done):
                for number, line in enumerate(block.split(b"\n"), start=progress.done + 1):
                    if what := fault(line, first=number == 1):
                        raise BadInput(f"{path}, line {number:,}: {what}")
            block = block if block.endswith(b"\n") else block + b"\n"
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b" ")
            file.write(block)
            progress.add(block.count(b"\n"))
    if not progress.done:
        raise BadInput(f"{path} is empty: expected one sentence a line")
    return progress.done


def copy_pairs(sides: Sequence[Path], outputs: Sequence[Path]) -> int:
    """Add two aligned files to two others; their number of lines. BadInput when it differs."""
    counts = [copy_checked(path, output) for path, output in zip(sides, outputs, strict=True)]
    if counts[0] != counts[1]:
        raise BadInput(
            f"{sides[0]} has {counts[0]:,} lines but {sides[1]} has {counts[1]:,}: "
            "the sides are misaligned; restore both files from the same source"
        )
    return counts[0]


def fetch(prefixes: dict[str, str], source: str, target: str, output: Path) -> None:
    """Fill the folder `output` from {split: PREFIX[,PREFIX]}, unless that is already done."""
    files = {split: list(zip(resolve(prefixes[split], split, source),
                             resolve(prefixes[split], split, target), strict=True))
             for split in SPLITS}

    def work(folder: Path) -> None:
        for split in SPLITS:
            outputs = [folder / f"{split}.{language}" for language in (source, target)]
            pairs = sum(copy_pairs(sides, outputs) for sides in files[split])
            print(f"[raw] {split}: {pairs:,} pairs", file=sys.stderr)

    contents = {split: [[sha256(path) for path in sides] for sides in files[split]]
                for split in SPLITS}
    finish_step(output, inputs=[], work=work,
                settings={"files": contents, "languages": [source, target]})
