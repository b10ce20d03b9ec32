"""Parallel text: one sentence per line; lines with the same number are translations of each other.

Only a line feed ends a line, so the lines of both sides are counted in the same way. Many programs
also end lines at carriage returns, so the output of fetch.py and split.py has none: one before a
line feed is removed, any other becomes a space.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from steps.errors import BadInput
from text.line_checks import line_error

SPLITS = ("train", "valid", "test")
HOLD_OUT = "hold-out.json"  # what clean.py reads when a corpus has no validation set


def side_paths(folder: Path, languages: Iterable[str]) -> list[Path]:
    """The six files of a corpus folder: SPLIT.LANGUAGE, split by split."""
    return [folder / f"{split}.{language}" for split in SPLITS for language in languages]


def check_languages(source: str, target: str) -> None:
    """BadInput unless the languages differ: they are part of the file names."""
    if source == target:
        raise BadInput(f"--source and --target are both '{source}': give two languages")


def without_returns(line: bytes) -> bytes:
    """A line without its line feed, and without carriage returns."""
    return line.removesuffix(b"\n").removesuffix(b"\r").replace(b"\r", b" ")


def decode(line: bytes, path: Path, number: int) -> str:
    """A line as text; BadInput names the file, the line and the byte that is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path}, line {number}: {line_error(line, mark=False)}") from None


def check_utf8(path: Path) -> None:
    """BadInput names the first line that is not UTF-8."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            decode(line, path, number)


def count_lines(path: Path) -> int:
    """Number of lines; a last line without a line feed counts."""
    if not path.is_file():
        raise BadInput(f"{path} is missing: run the step that writes it first")
    lines, end = 0, b"\n"
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            lines += block.count(b"\n")
            end = block[-1:]
    return lines + (end != b"\n")


def check_aligned(source: Path, target: Path) -> int:
    """Number of pairs; BadInput if the sides differ in length or are empty."""
    lines, others = count_lines(source), count_lines(target)
    if lines != others:
        raise BadInput(
            f"{source} has {lines:,} lines but {target} has {others:,}: the sides are misaligned; "
            "restore both files from the same source"
        )
    if not lines:
        raise BadInput(f"{source} is empty: expected one sentence per line")
    return lines
