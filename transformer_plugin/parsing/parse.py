"""``transformer-plugin parse``: prints a tree for each line of text."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from ..text_streams import blocks, check_output, open_input, print_texts, sentences
from ..translation.arguments import add_model_arguments, add_search_arguments
from ..translation.loading import load_translator
from ..translation.translator import Translator
from . import check_nltk

if TYPE_CHECKING:
    from nltk import Tree

_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "{": "-LCB-", "}": "-RCB-"}
# nltk's tokeniser separates only ASCII quotes and dashes from words.
_ASCII = str.maketrans({**dict.fromkeys("‘’", "'"), **dict.fromkeys("„“”", '"'), "—": " — "})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin parse``."""
    add_model_arguments(parser)
    add_search_arguments(parser, longer="refused")
    parser.set_defaults(beam=21, lenpen=0.3, only_trees=True)
    parser.add_argument(
        "--max-len-own", type=int, default=300, metavar="N",
        help="a tree has at most N tokens more than its sentence, 6.3 (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--input", type=Path, help="one sentence per line; default: standard input")
    parser.add_argument(
        "--tokenised", action="store_true", help="the text is split into words like the"
        " treebank; default: split it with nltk's tokeniser of the Penn treebank",
    )  # fmt: skip
    parser.add_argument("--draw", action="store_true", help="draw the trees as text")


def main(args: argparse.Namespace) -> None:
    """Prints a tree in brackets for each line, or draws it; an empty line for an empty line.

    Raises:
        OSError: a file is missing.
        ValueError: an option has an invalid value, a standard stream is closed, or nltk is missing.
    """
    check_nltk()
    from nltk import TreebankWordTokenizer

    check_output()
    split_penn = TreebankWordTokenizer().tokenize
    tokenise = str.split if args.tokenised else lambda line: split_penn(line.translate(_ASCII))
    name = str(args.input or "standard input")
    with open_input(args.input) as lines:
        translator = load_translator(args)
        size = 1 if lines.isatty() else 1000
        quotes = {} if args.tokenised else _quotes(translator)

        def words_of(line: str) -> list[str]:
            return [_without_brackets(quotes.get(word, word)) for word in tokenise(line)]

        split = ([*map(words_of, block)] for block in blocks(sentences(lines, name), size))
        print_texts(
            _text(found, args.draw)
            for first, words in zip(count(1, size), split)
            for found in parses(translator, words, name, first)
        )


def _quotes(translator: Translator) -> dict[str, str]:
    """A plain quote for the tokeniser's two, if the model knows it better: the trees of GUM and of
    IcePaHC have plain ones, those of the Wall Street Journal the tokeniser's."""
    plain, penn = (len(translator.read(quote)[0][0]) for quote in ('"', "``"))
    return dict.fromkeys(("``", "''"), '"') if plain < penn else {}


def _without_brackets(word: str) -> str:
    for bracket, name in _BRACKETS.items():
        word = word.replace(bracket, name)
    return word


def _text(parse: Parse | None, drawn: bool) -> str:
    """What is printed for a sentence; says on the standard error that a tree was repaired."""
    if parse is None:
        return "\n"
    if parse.repaired:
        words = " ".join(parse.tree.leaves())
        print(f"repaired, the output was not a tree: {words}", file=sys.stderr)
    if not drawn:
        return " ".join(str(parse.tree).split()) + "\n"
    drawing = io.StringIO()
    parse.tree.pretty_print(stream=drawing)
    return drawing.getvalue()


@dataclass(frozen=True)
class Parse:
    """A tree, and whether the output had to be repaired because it was not a tree."""

    tree: Tree
    repaired: bool


def parses(
    translator: Translator,
    sentences: Sequence[Sequence[str]],
    name: str = "sentences",
    first: int = 1,
) -> Iterator[Parse | None]:
    """The parse of each sentence of words; None for an empty one.

    Args:
        name, first: file and line of the first sentence, for an error.

    Raises:
        ValueError: a sentence is longer than ``--part-length``; those before it come first.
    """
    from .linear_trees import NotATree, constituents, rebuilt, repaired

    labels = constituents(translator.task.target_dictionary.symbols)
    read = [translator.read(" ".join(words)) for words in sentences]
    beams = iter(translator.search([parts[0][1] for parts in read if parts]))
    for number, (words, parts) in enumerate(zip(sentences, read, strict=True), first):
        if not parts:
            yield None
            continue
        if len(parts) > 1:
            raise ValueError(
                f"{name}, line {number}: a sentence of {len(words)} words"
                f" ('{' '.join(words)[:40]}') has more than {translator.part_length}"
                " subwords: split it, or raise --part-length"
            )
        tokens = translator.part(*parts[0], next(beams)[0]).target
        try:
            yield Parse(rebuilt(tokens, words), repaired=False)
        except NotATree:
            yield Parse(repaired(tokens, words, labels), repaired=True)
