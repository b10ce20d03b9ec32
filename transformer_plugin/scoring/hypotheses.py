"""``transformer-plugin hypotheses``: the translations in the output of fairseq-generate."""

from __future__ import annotations

import argparse
from pathlib import Path

from sacremoses import MosesDetokenizer

from ..files import atomic_write, shown_path


def read_hypotheses(log: Path) -> list[str]:
    """The best detokenised hypothesis of each sentence (its first D- line).

    They are in the order of the test set.

    Raises:
        ValueError: there are no hypotheses, or a sentence has none.
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
            " generate again with --task vaswani_translation, which translates all sentences"
        )
    return [best[i] for i in sorted(best)]


def detokenise(hypotheses: list[str], language: str) -> list[str]:
    """Undoes Moses' tokenisation and escapes (``&apos;``), for a language such as ``de``."""
    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(hypothesis.split()) for hypothesis in hypotheses]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin hypotheses``."""
    parser.add_argument("--log", type=Path, required=True, help="output of fairseq-generate")
    parser.add_argument("--output", type=Path, required=True, help="one translation per line")
    parser.add_argument("--detokenise", metavar="LANGUAGE", help="undo Moses' tokenisation")


def main(args: argparse.Namespace) -> None:
    """Writes ``--output``."""
    hypotheses = read_hypotheses(args.log)
    if args.detokenise:
        hypotheses = detokenise(hypotheses, args.detokenise)
    with atomic_write(args.output) as file:
        file.writelines(f"{h}\n" for h in hypotheses)
    print(f"{len(hypotheses)} translations: {shown_path(args.output)}")
