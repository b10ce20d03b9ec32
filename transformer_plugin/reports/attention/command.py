"""``transformer-plugin attention``: writes a page, figures and files of attention weights."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...files import atomic_write, check_target
from ...text_lines import SURROGATE
from ...text_streams import sentences as lines_of
from ...translation.arguments import add_model_arguments, add_search_arguments
from ...translation.attention_weights import KINDS
from ...translation.loading import load_translator
from ...translation.translator import Translator
from .explained import Explained, InputSentence, explain, from_data, from_texts
from .figure_choice import Choice
from .page import page

logger = logging.getLogger(__name__)

_LARGE = 20_000_000  # bytes of a page that opens in about two seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin attention``."""
    add_model_arguments(parser, data="--data")
    add_search_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--text", action="append", help="a sentence; may be repeated")
    what.add_argument("--input", type=Path, help="file with one sentence per line")
    what.add_argument(
        "--sentences",
        type=int,
        default=50,
        metavar="N",
        help="the first N sentences of the data (default: %(default)s)",
    )
    what.add_argument(
        "--ids",
        type=int,
        nargs="+",
        metavar="I",
        help="sentences of the data, numbered as in fairseq-generate",
    )
    parser.add_argument("--split", default="test", help="split of the data (default: %(default)s)")
    parser.add_argument(
        "--longest",
        type=int,
        default=150,
        metavar="SUBWORDS",
        help="omit the weights of sentences with more subwords (default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="REPORT.html",
                        help="page to write")  # fmt: skip
    parser.add_argument("--weights", type=Path, metavar="FILE.npz", help="also write exact weights")
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        metavar="KIND:LAYER:HEADS[:WORD]",
        help="SVG and PNG beside the report, for example encoder:5:all or encoder:5:5,6:its",
    )
    parser.add_argument(
        "--figure-sentence",
        type=int,
        default=1,
        metavar="N",
        help="number of the sentence to draw, from 1 (default: %(default)s)",
    )


def main(args: argparse.Namespace) -> None:
    """Computes everything, then writes the page, the figures and the weights.

    Raises:
        OSError: a file is missing or cannot be written.
        ValueError: an option has an invalid value.
    """
    choices = [Choice.parse(text) for text in args.figure]
    check_target(args.output, args.input)
    if args.weights:
        check_target(args.weights, args.input, args.output)
    if min(args.sentences, args.longest) < 1:
        raise ValueError("--sentences and --longest must be at least 1")
    for text in args.text or []:
        if SURROGATE.search(text):  # undecoded bytes
            raise ValueError(f"--text {text!r} is not valid UTF-8: correct it")
    translator = load_translator(args)
    inputs = _inputs(translator, args)
    if not inputs:
        raise ValueError("there is nothing to explain: every line is empty")
    if not 1 <= args.figure_sentence <= len(inputs):
        raise ValueError(f"--figure-sentence must be between 1 and {len(inputs)}")
    explained = list(explain(translator, inputs, args.longest))
    pictures = _pictures(choices, explained[args.figure_sentence - 1])
    if args.weights:
        named: dict[str, Any] = arrays(explained)  # none of them is savez's allow_pickle
        with atomic_write(args.weights, "wb") as file:
            np.savez_compressed(file, **named)
    html = page(_about(translator, args), explained).encode()
    with atomic_write(args.output, "wb") as file:
        file.write(html)
    count, megabytes = len(explained), len(html) / 1e6
    print(f"{count} sentence{'s' * (count > 1)}, {megabytes:.1f} MB: {args.output}")
    if len(html) > _LARGE:
        logger.warning("the page is slow to open: use fewer --sentences or a lower --longest")
    for name, figure in pictures:
        from .figures import save  # importing matplotlib is slow

        path = args.output.with_name(f"{args.output.stem}-{name}")
        save(figure, path)
        print(f"{path}.svg and .png")


def arrays(explained: Sequence[Explained]) -> dict[str, np.ndarray]:
    """The arrays of ``--weights`` by name. For sentence i, from 0, these are ``i/encoder``,
    ``i/decoder`` and ``i/encoder-decoder``, ``[N, H, queries, keys]`` in float32, and the subwords
    ``i/source``, ``i/target`` and ``i/read`` (the keys of the decoder)."""
    named: dict[str, np.ndarray] = {}
    for i, sentence in enumerate(explained):
        pieces = {"source": sentence.source, "target": sentence.target, "read": sentence.read}
        named |= {f"{i}/{name}": np.array(value) for name, value in pieces.items()}
        if sentence.weights is not None:
            named |= {f"{i}/{kind}": sentence.weights.of(kind).numpy() for kind in KINDS}
    return named


def _inputs(translator: Translator, args: argparse.Namespace) -> list[InputSentence]:
    if args.text:
        return list(from_texts(translator, args.text, "text"))
    if args.input:
        with args.input.open("rb") as file:
            return list(from_texts(translator, list(lines_of(file, str(args.input))), "line"))
    return from_data(translator, args.split, args.ids or args.sentences)


def _pictures(choices: Sequence[Choice], sentence: Explained) -> list[tuple[str, Any]]:
    """Figures with their file names: lines, and without a word also a heat map."""
    if not choices:
        return []
    from .figures import heat_maps, lines  # importing matplotlib is slow

    made = []
    for choice in choices:
        panel = choice.panel(sentence)
        made.append((f"{choice.name}-lines", lines(panel, choice.query(panel.queries))))
        if not choice.word:
            made.append((f"{choice.name}-map", heat_maps(panel)))
    return made


def _about(translator: Translator, args: argparse.Namespace) -> dict[str, Any]:
    model, cfg = translator.models[0], translator.task.cfg
    layers = len(model.encoder.layers), len(model.decoder.layers), len(model.decoder.layers)
    return {
        "title": f"Attention, {cfg.source_lang} to {cfg.target_lang}",
        "facts": f"{args.path}, data {args.data}, beam {args.beam}, length penalty alpha"
        f" {args.lenpen:g}",
        "layers": dict(zip(KINDS, layers, strict=True)),
        "heads": model.cfg.num_heads,
        "window": model.cfg.attention_window,
    }
