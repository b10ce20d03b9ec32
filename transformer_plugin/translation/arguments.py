"""Options of the commands that translate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..decode_precision import PRECISIONS
from ..search_options import BEAM, LENPEN


def add_model_arguments(parser: argparse.ArgumentParser, data: str = "data") -> None:
    """Adds the options for models and data; ``data`` is an argument or an option, ``--data``."""
    required: dict[str, Any] = {"required": True} if data.startswith("--") else {}
    parser.add_argument(
        data,
        type=Path,
        help="binarised data with its dictionaries, or the folder of a run",
        **required,
    )
    parser.add_argument(
        "--path",
        help="checkpoint; several, A.pt:B.pt: an ensemble; default:"
        " checkpoints/averaged.pt of the run, or beside the data",
    )
    parser.add_argument("-s", "--source-lang", help="source language; default: that of the data")
    parser.add_argument("-t", "--target-lang", help="target language; default: that of the data")
    parser.add_argument(
        "--subwords",
        type=Path,
        help="folder of the subword model; default:"
        " subwords/ beside the data, where recipes/prepare.sh puts it",
    )
    parser.add_argument(
        "--lowercase",
        action="store_true",
        help="convert the text to lower case; default: as in clean/report.json beside the data",
    )
    parser.add_argument("--cpu", action="store_true", help="do not use a GPU")


def add_search_arguments(
    parser: argparse.ArgumentParser, longer: str = "translated in parts"
) -> None:
    """Adds the options of the search; ``longer`` says what happens to a line that is too long."""
    parser.add_argument(
        "--beam", type=int, default=BEAM, help="hypotheses kept at each step (default %(default)s)"
    )
    parser.add_argument(
        "--lenpen",
        type=float,
        default=LENPEN,
        help="alpha of the length penalty (default %(default)s)",
    )
    parser.add_argument(
        "--decode-precision",
        choices=PRECISIONS,
        help="precision; default: fp32 on a CPU, bf16 on a GPU, or fp16 on one before Ampere",
    )
    parser.add_argument(
        "--part-length",
        type=int,
        default=500,
        metavar="SUBWORDS",
        help=f"a longer line is {longer} (default %(default)s)",
    )


def add_n_best_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options for several translations of a sentence, alignments and language models."""
    parser.add_argument(
        "--nbest",
        type=int,
        metavar="N",
        help="print the N best translations of"
        " each line, as LINE ||| text ||| score; at most --beam",
    )
    parser.add_argument(
        "--sampling",
        action="store_true",
        help="draw translations at random"
        " instead of searching for the best, --nbest of them (default 1)",
    )
    parser.add_argument(
        "--sampling-topk",
        type=int,
        metavar="K",
        default=-1,
        help="draw from the K likeliest tokens (default: all)",
    )
    parser.add_argument(
        "--sampling-topp",
        type=float,
        metavar="P",
        default=-1.0,
        help="draw from the fewest tokens whose probabilities sum up to P (default: all)",
    )
    parser.add_argument(
        "--temperature", type=float, default=1.0, help="divides the logits (default %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed for --sampling (default %(default)s)"
    )
    parser.add_argument(
        "--prefix",
        action="store_true",
        help="lines are a sentence, a tab and the words that its translation must begin with",
    )
    parser.add_argument(
        "--print-alignment",
        action="store_true",
        help="add aligned words, as ||| 0-0 1-2: numbers of a source and a target word, from 0",
    )
    parser.add_argument(
        "--replace-unk",
        nargs="?",
        const="",
        metavar="FILE",
        help="replace unknown"
        " words by the source words that they are aligned to, or by the"
        " translations in FILE, lines of a source word and its translation",
    )
    parser.add_argument(
        "--lm-path",
        help="language model of the target language, of fairseq's task"
        " language_modeling; its log-probabilities are added (shallow fusion)",
    )
    parser.add_argument(
        "--lm-weight",
        type=float,
        default=0.1,
        help="factor of the language model (default %(default)s)",
    )
