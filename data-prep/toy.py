"""Write the toy corpus: English sentences of a small grammar and their German translations."""

from __future__ import annotations

import argparse
from pathlib import Path

from steps.errors import exit_cleanly
from toy.corpus import SEED, SIZES, write_toy_corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, type=Path, help="folder for the six text files")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the corpus (default %(default)s)"
    )
    for split, size in SIZES.items():
        parser.add_argument(
            f"--{split}",
            type=int,
            default=size,
            metavar="PAIRS",
            help="number of pairs (default %(default)s)",
        )
    args = parser.parse_args()
    sizes = {split: getattr(args, split) for split in SIZES}
    write_toy_corpus(args.output, args.seed, sizes)


if __name__ == "__main__":
    exit_cleanly(main)
