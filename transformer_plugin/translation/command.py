"""``transformer-plugin translate``: translates raw text line by line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch

from ..files import atomic_write, check_target
from ..text_streams import blocks, check_output, open_input, print_texts, sentences
from .alignment import word_links
from .arguments import add_model_arguments, add_n_best_arguments, add_search_arguments
from .loading import load_translator
from .translator import LongPrefix, Translation, Translator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin translate``."""
    add_model_arguments(parser)
    add_search_arguments(parser)
    add_n_best_arguments(parser)
    parser.add_argument("--input", type=Path, help="one sentence a line; default: standard input")
    parser.add_argument("--output", type=Path, help="file to write; default: standard output")
    parser.add_argument(
        "--buffer",
        type=int,
        metavar="LINES",
        help="lines to translate together (default 1000; 1 if the input is a terminal)",
    )


def main(args: argparse.Namespace) -> None:
    """Translates ``--input``. The file ``--output`` is written atomically.

    Raises:
        OSError: a file is missing or cannot be written.
        ValueError: an option has an invalid value, or a standard stream is closed.
    """
    if args.buffer is not None and args.buffer < 1:
        raise ValueError("--buffer must be at least 1")
    if not 0 <= args.seed < 1 << 63:
        raise ValueError(f"--seed {args.seed}: expected a number from 0 to 2**63 - 1")
    if not args.output:
        check_output()
    elif args.output.is_dir():
        raise IsADirectoryError(f"{args.output} is a folder: give a file with --output")
    else:
        check_target(args.output, args.input)
    name = str(args.input or "standard input")
    with open_input(args.input) as lines:
        translator = load_translator(args)
        torch.manual_seed(args.seed)
        size = args.buffer or (1 if lines.isatty() else 1000)
        found = translated(translator, blocks(sentences(lines, name), size), args)
        if args.output:
            with atomic_write(args.output, follow_symlinks=True) as file:
                file.writelines(found)
        else:
            print_texts(found)


def translated(
    translator: Translator, blocks: Iterator[list[str]], args: argparse.Namespace
) -> Iterator[str]:
    """The translations in order: a line for each sentence, or several with ``--nbest``.

    Raises:
        ValueError: a prefix is too long; names the line.
    """
    number = 0
    for block in blocks:
        prefixes = None
        if args.prefix:
            prefixes = [line.partition("\t")[2] for line in block]
            block = [line.partition("\t")[0] for line in block]
        try:
            results = translator.n_best(block, args.nbest or 1, prefixes)
        except LongPrefix as error:
            place = f"{args.input or 'standard input'}:{number + error.number + 1}"
            raise ValueError(f"{place}: {error.problem}") from None
        for found in results:
            for translation in found:
                fields = _fields(translator, translation, args)
                yield " ||| ".join([str(number), *fields] if args.nbest else fields[:-1]) + "\n"
            number += 1


def _fields(
    translator: Translator, translation: Translation, args: argparse.Namespace
) -> list[str]:
    """Text, alignment if there is one, and score."""
    subwords = translator.subwords, translator.target_subwords
    links = word_links(translation, *subwords) if args.print_alignment else []
    aligned = [" ".join(f"{source}-{target}" for source, target in links)]
    score = f"{translation.score:.4f}"
    return [translation.text, *(aligned if args.print_alignment else []), score]
