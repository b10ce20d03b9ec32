"""``transformer-plugin parseval``: labelled bracketing F1 of linearised trees."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..files import atomic_write, check_target
from ..scoring.translated_set import check_set
from ..text_lines import read_lines
from . import check_nltk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``transformer-plugin parseval``."""
    parser.add_argument("--hypotheses", type=Path, required=True, help="linearised trees, one per"
                        " line, as recipes/generate.sh writes them")  # fmt: skip
    parser.add_argument("--gold", type=Path, required=True, help="trees in brackets, of the same"
                        " sentences, as data-prep/trees.py writes them")  # fmt: skip
    parser.add_argument(
        "--set", help="set of the gold trees, such as test; outputs for another set are refused"
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="file to write, such as score.json"
    )


def main(args: argparse.Namespace) -> None:
    """Prints the scores and writes ``--output``.

    Raises:
        OSError: a file is missing.
        ValueError: the files have different numbers of sentences or are of different sets, a gold
            tree is invalid, an output is in brackets, ``--output`` is one of the inputs, or nltk
            is missing.
    """
    check_target(args.output, args.hypotheses, args.gold)
    check_nltk()
    from .linear_trees import ROOT
    from .scores import score
    from .treebank import read_trees

    if args.set:
        check_set(args.hypotheses, args.set)
    gold = [tree for _, tree in read_trees(args.gold, "penn") if tree is not None]
    lines = read_lines(args.hypotheses)
    for number, line in enumerate(lines, start=1):
        if line.startswith(f"({ROOT} "):
            raise ValueError(
                f"{args.hypotheses}:{number}: a tree in brackets: expected its tokens, as"
                " recipes/generate.sh writes them in hypotheses.txt"
            )
    outputs = [line.split() for line in lines]
    if len(gold) != len(outputs):
        raise ValueError(
            f"{args.hypotheses} has {len(outputs)} lines, {args.gold} {len(gold)} trees: they must"
            " be of the same sentences"
        )
    if not gold:
        raise ValueError(f"{args.gold} is empty: expected trees")
    scores = score(outputs, gold) | ({"set": args.set} if args.set else {})
    with atomic_write(args.output) as file:
        file.write(json.dumps(scores, indent=1) + "\n")
    print(f"F1 {scores['f1']:.2f}, precision {scores['precision']:.2f}, recall"
          f" {scores['recall']:.2f}, complete match {scores['complete_match']:.2f}, tagging"
          f" {scores['tagging']:.2f}  {scores['signature']}")  # fmt: skip
    print(f"no tree: {scores['no_tree']} of {len(gold)} outputs, counted as empty; repaired,"
          f" F1 {scores['repaired']['f1']:.2f}; right-branching trees, F1"
          f" {scores['right_branching']:.2f}")  # fmt: skip
