"""Translations in the order of the test set, from what fairseq-generate prints."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from sacremoses import MosesDetokenizer


def read_hypotheses(log: Path) -> list[str]:
    """The best detokenised hypothesis of each sentence (the first of its D- lines), in order.

    Raises:
        ValueError: there is none, or a sentence is missing.
    """
    best: dict[int, str] = {}
    with log.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.startswith(b"D-"):
                continue
            try:
                fields = line.removesuffix(b"\n").decode("utf-8").split("\t", 2)
            except UnicodeDecodeError as error:
                raise ValueError(f"{log}:{number}: not UTF-8 at byte {error.start + 1}") from None
            if len(fields) != 3 or not fields[0][2:].isdigit():
                raise ValueError(f"{log}:{number}: expected D-NUMBER, score and text, got {line!r}")
            best.setdefault(int(fields[0][2:]), fields[2])
    if not best:
        raise ValueError(f"{log}: no D- lines; is it the output of fairseq-generate?")
    missing = sorted(set(range(max(best) + 1)) - best.keys())
    if missing:
        raise ValueError(
            f"{log}: {len(missing)} sentences have no hypothesis, the first is {missing[0]};"
            " generate again with --task vaswani_translation, which leaves none out"
        )
    return [best[i] for i in sorted(best)]


def detokenise(hypotheses: list[str], language: str) -> list[str]:
    """Text without Moses' tokenisation and escapes (``&apos;``), of a language such as ``de``."""
    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(hypothesis.split()) for hypothesis in hypotheses]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin hypotheses``."""
    parser.add_argument("--log", type=Path, required=True, help="output of fairseq-generate")
    parser.add_argument("--output", type=Path, required=True, help="one translation a line")
    parser.add_argument("--detokenise", metavar="LANGUAGE", help="undo Moses' tokenisation")


def main(args: argparse.Namespace) -> None:
    """Writes ``--output``."""
    hypotheses = read_hypotheses(args.log)
    if args.detokenise:
        hypotheses = detokenise(hypotheses, args.detokenise)
    partial = args.output.with_name(args.output.name + ".partial")
    partial.write_text("".join(f"{h}\n" for h in hypotheses), encoding="utf-8")
    os.replace(partial, args.output)
    print(f"{len(hypotheses)} translations: {args.output}")
