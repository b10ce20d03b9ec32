"""``transformer-plugin hypotheses``: the translations in the output of fairseq-generate."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from sacremoses import MosesDetokenizer

from ..files import atomic_write, check_target, shown_path
from ..text_lines import decode, moses_words


def read_hypotheses(log: Path) -> list[str]:
    """The best detokenised hypothesis of each sentence (its first D- line).

    They are in the order of the test set.

    Raises:
        ValueError: there are no hypotheses, a sentence has none, or the log is truncated or of
            several runs.
    """
    best: dict[int, str] = {}
    before = -1  # the sentence of the D- line before
    with log.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.startswith(b"D-"):
                continue
            fields = decode(line.removesuffix(b"\n"), log, number).split("\t", 2)
            if len(fields) != 3 or not fields[0][2:].isdecimal():
                raise ValueError(f"{log}:{number}: expected D-NUMBER, score and text, got {line!r}")
            if not line.endswith(b"\n"):
                raise ValueError(f"{log}:{number}: the line is truncated: generate again")
            sentence = int(fields[0][2:])
            if sentence in best and sentence != before:
                raise ValueError(
                    f"{log}:{number}: sentence {sentence} was translated before: expected the"
                    " output of a single run; generate again to a new file"
                )
            best.setdefault(sentence, fields[2])
            before = sentence
    if not best:
        raise ValueError(f"{log}: no D- lines; is it the output of fairseq-generate?")
    if missing := max(best) + 1 - len(best):
        first = next(i for i in itertools.count() if i not in best)
        raise ValueError(
            f"{log}: {missing} sentences have no hypothesis, the first is {first};"
            " generate again with --task vaswani_translation, which translates all sentences"
        )
    return [best[i] for i in sorted(best)]


def detokenise(hypotheses: list[str], language: str) -> list[str]:
    """Undoes Moses' tokenisation and escapes (``&apos;``), for a language such as ``de``."""
    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(moses_words(hypothesis)) for hypothesis in hypotheses]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin hypotheses``."""
    parser.add_argument("--log", type=Path, required=True, help="output of fairseq-generate")
    parser.add_argument(
        "--output", type=Path, required=True, help="file to write, one translation per line"
    )
    parser.add_argument("--detokenise", metavar="LANGUAGE", help="undo Moses' tokenisation")


def main(args: argparse.Namespace) -> None:
    """Writes ``--output``."""
    check_target(args.output, args.log)
    hypotheses = read_hypotheses(args.log)
    if args.detokenise:
        hypotheses = detokenise(hypotheses, args.detokenise)
    with atomic_write(args.output) as file:
        file.writelines(f"{h}\n" for h in hypotheses)
    print(f"{len(hypotheses)} translations: {shown_path(args.output)}")
