"""Split one parallel text into train, valid and test, shuffled, by source sentence:

    python data-prep/split.py PREFIX --source en --target de --output FOLDER
    TRAIN=FOLDER/train VALID=FOLDER/valid TEST=FOLDER/test recipes/prepare.sh EXPERIMENT

All translations of a source sentence (ignoring case, extra spaces and Unicode's forms of a letter)
go to the same split, so that no source sentence of valid and test is in train; valid and test keep
the first of them.
The same seed gives the same files.
"""

from __future__ import annotations

import argparse
import random
import sys
import unicodedata
from pathlib import Path

from sources.user_files import copy_pairs, resolve
from steps.errors import BadInput, exit_cleanly
from steps.step import run_step
from text.parallel import SPLITS, check_languages
from transformer_plugin.files import checksum

Pair = tuple[str, str]


def split_pairs(pairs: list[Pair], valid: int, test: int, seed: int) -> dict[str, list[Pair]]:
    """{split: pairs}; BadInput if there are not enough source sentences."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        source = unicodedata.normalize("NFC", pair[0])
        groups.setdefault(" ".join(source.split()).casefold(), []).append(pair)
    if len(groups) <= valid + test:
        raise BadInput(
            f"{len(groups):,} different source sentences are not enough for "
            f"{valid:,} in valid, {test:,} in test, and any in train: lower "
            "--valid or --test"
        )
    shuffled = list(groups.values())
    stream = random.Random(seed)
    stream.shuffle(shuffled)
    train = [pair for group in shuffled[valid + test :] for pair in group]
    stream.shuffle(train)
    return {
        "train": train,
        "valid": [group[0] for group in shuffled[:valid]],
        "test": [group[0] for group in shuffled[valid : valid + test]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "prefix",
        metavar="PREFIX[,PREFIX]",
        help="the text is in PREFIX.SOURCE and PREFIX.TARGET, plain or .gz",
    )
    parser.add_argument("--source", required=True, help="source language, such as en")
    parser.add_argument("--target", required=True, help="target language, such as de")
    parser.add_argument("--output", required=True, type=Path, help="folder for the six files")
    parser.add_argument(
        "--valid", type=int, default=1000, help="number of pairs (default %(default)s)"
    )
    parser.add_argument(
        "--test", type=int, default=1000, help="number of pairs (default %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the shuffle (default %(default)s)"
    )
    args = parser.parse_args()
    languages = (args.source, args.target)
    check_languages(*languages)
    if min(args.valid, args.test) < 1:
        raise BadInput("expected --valid and --test of at least 1")
    inputs = [resolve(args.prefix, "train", language) for language in languages]

    def work(folder: Path) -> None:
        wholes = [folder / f"all.{language}" for language in languages]
        for paths in zip(*inputs, strict=True):
            copy_pairs(paths, wholes)
        sides = [path.read_bytes().decode("utf-8").split("\n")[:-1] for path in wholes]
        found = split_pairs(list(zip(*sides, strict=True)), args.valid, args.test, args.seed)
        for split in SPLITS:
            for side, language in enumerate(languages):
                text = "".join(f"{pair[side]}\n" for pair in found[split])
                (folder / f"{split}.{language}").write_text(text, encoding="utf-8", newline="\n")
            print(f"[split] {split}: {len(found[split]):,} pairs", file=sys.stderr)
        for path in wholes:
            path.unlink()

    run_step(
        args.output,
        inputs=[],
        reads=[path for paths in inputs for path in paths],
        work=work,
        settings={
            "files": [[checksum(path) for path in paths] for paths in inputs],
            "languages": list(languages),
            "valid": args.valid,
            "test": args.test,
            "seed": args.seed,
        },
    )


if __name__ == "__main__":
    exit_cleanly(main)
