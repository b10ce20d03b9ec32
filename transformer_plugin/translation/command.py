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
    """Translates ``--input``; the file ``--output`` appears when all of it is there."""
    name = str(args.input or "standard input")
    with args.input.open("rb") if args.input else contextlib.nullcontext(sys.stdin.buffer) as lines:
        translator = load_translator(args)
        size = args.buffer or (1 if lines.isatty() else 1000)
        found = translated(translator, _blocks(sentences(lines, name), size))
        if args.output:
            partial = args.output.with_name(args.output.name + ".partial")
            try:
                with partial.open("w", encoding="utf-8", newline="\n") as file:
                    file.writelines(found)
                os.replace(partial, args.output)
            finally:
                partial.unlink(missing_ok=True)
            return
        try:
            for line in found:
                sys.stdout.buffer.write(line.encode())
                sys.stdout.buffer.flush()
        except BrokenPipeError:  # as by `| head`: nobody wants the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
