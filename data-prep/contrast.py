"""Write contrastive pairs of the toy grammar, for `transformer-plugin contrast`: sentences of the
toy corpus's test set with all possible errors of gender, case, number and verb position, as a
table with the columns source, right, wrong, category and distance."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

from steps.errors import BadInput, exit_cleanly
from toy.contrast import mistakes
from toy.corpus import SEED, SIZES, new_sentences
from transformer_plugin.files import atomic_write
from transformer_plugin.translation.contrastive_pairs import COLUMNS


def table(seed: int, sentences: int) -> str:
    """The pairs of the first sentences of the corpus, which are its test set."""
    lines = ["\t".join(COLUMNS) + "\n"]
    for sentence, english, german in islice(new_sentences(seed), sentences):
        for found in mistakes(sentence):
            distance = "" if found.distance is None else found.distance
            lines.append(f"{english}\t{german}\t{found.wrong}\t{found.category}\t{distance}\n")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, type=Path, help="the table, FILE.tsv")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the corpus (default %(default)s)"
    )
    parser.add_argument("--sentences", type=int, default=SIZES["test"], help="number of sentences"
                        " of the test set to use (default: all %(default)s)")  # fmt: skip
    args = parser.parse_args()
    if not 1 <= args.sentences <= SIZES["test"]:
        raise BadInput(f"expected --sentences from 1 to {SIZES['test']}, the size of the test set")
    text = table(args.seed, args.sentences)
    with atomic_write(args.output) as file:
        file.write(text)
    print(f"{text.count(chr(10)) - 1:,} pairs: {args.output}", file=sys.stderr)


if __name__ == "__main__":
    exit_cleanly(main)
