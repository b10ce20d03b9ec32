"""``transformer-plugin translate``: a line of translation for each line of text."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .translator import Translator, add_model_arguments, load_translator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin translate``."""
    add_model_arguments(parser)
    parser.add_argument("--input", type=Path, help="one sentence a line; default: standard input")
    parser.add_argument("--output", type=Path, help="default: standard output")
    parser.add_argument("--buffer", type=int, metavar="LINES", help="translated together"
                        " (default 1000; 1 where a person types)")


def main(args: argparse.Namespace) -> None:
    """Translates ``--input``; the file ``--output`` appears when all of it is there.

    Raises:
        OSError: a file is missing or not to be written.
        ValueError: an option that means nothing, or a closed stream.
    """
    if args.buffer is not None and args.buffer < 1:
        raise ValueError("--buffer is at least 1")
    for stream, option in ((sys.stdin, "input"), (sys.stdout, "output")):
        if stream is None and not getattr(args, option):
            raise ValueError(f"the standard {option} is closed: name a file by --{option}")
    if args.output and args.output.is_dir():
        raise IsADirectoryError(f"{args.output} is a folder: name a file by --output")
    name = str(args.input or "standard input")
    with args.input.open("rb") if args.input else contextlib.nullcontext(sys.stdin.buffer) as lines:
        translator = load_translator(args)
        size = args.buffer or (1 if lines.isatty() else 1000)
        found = translated(translator, _blocks(sentences(lines, name), size))
        if args.output:
            _write(args.output, found)
            return
        try:
            for line in found:
                sys.stdout.buffer.write(line.encode())
                sys.stdout.buffer.flush()
        except BrokenPipeError:  # as by `| head`: nobody wants the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(output: Path, lines: Iterator[str]) -> None:
    if output.exists() and not output.is_file():  # a device or a pipe must stay what it is
        with output.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        return
    output = output.resolve()  # what a symbolic link means
    partial = output.with_name(output.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        os.replace(partial, output)
    finally:
        partial.unlink(missing_ok=True)


def translated(translator: Translator, blocks: Iterator[list[str]]) -> Iterator[str]:
    """One line for each sentence, in order."""
    for block in blocks:
        for translation in translator.translate(block):
            yield f"{translation.text}\n"


def sentences(lines: IO[bytes], name: str) -> Iterator[str]:
    """Lines as text; only a line feed ends one.

    Raises:
        ValueError: a line is not UTF-8; names it.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number:,}: not valid UTF-8 at byte {error.start + 1}; convert it"
                " (iconv -f LATIN1 -t UTF-8) or correct the line"
            ) from None


def _blocks(sentences: Iterator[str], size: int) -> Iterator[list[str]]:
    block = []
    for sentence in sentences:
        block.append(sentence)
        if len(block) >= size:
            yield block
            block = []
    if block:
        yield block
