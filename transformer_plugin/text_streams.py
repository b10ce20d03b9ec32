"""Text in and out of the commands: files, or the standard streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, TextIO

from .text_lines import decode


def open_input(path: Path | None) -> AbstractContextManager[BinaryIO]:
    """The file, or the standard input.

    Raises:
        OSError: the file is missing.
        ValueError: the standard input is closed.
    """
    if path:
        return path.open("rb")
    if sys.stdin is None:
        raise ValueError("the standard input is closed: give a file with --input")
    return nullcontext(sys.stdin.buffer)


def sentences(lines: BinaryIO, name: str) -> Iterator[str]:
    """Lines as text; only a line feed ends a line.

    Raises:
        ValueError: a line is not UTF-8; names it.
    """
    for number, line in enumerate(lines, start=1):
        yield decode(line, name, number)


def blocks(sentences: Iterator[str], size: int) -> Iterator[list[str]]:
    """Lists of ``size`` sentences; the last may be shorter."""
    block: list[str] = []
    try:
        for sentence in sentences:
            block.append(sentence)
            if len(block) >= size:
                yield block
                block = []
    except ValueError:  # yield the sentences before the unreadable line first
        yield block
        raise
    if block:
        yield block


def check_output() -> None:
    """Raises ValueError if the standard output is closed."""
    if sys.stdout is None:
        raise ValueError("the standard output is closed: redirect it to a file")


def print_texts(texts: Iterable[str]) -> None:
    """Prints each text at once, in UTF-8."""
    for text in texts:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def discard(stream: TextIO) -> None:
    """Redirects to /dev/null a stream whose reader has gone, so that the command can go on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
