"""Write the toy corpus: English sentences of a small grammar and their German translations.

The German has what a translation model must learn: gender, number, case, adjective endings,
verb-second and verb-final order, separable verbs. Each English sentence has one translation, no
sentence comes twice, and none of valid or test is in train, on either side. One seed gives the
same bytes on every machine.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import toy_english
import toy_german
from bad_input import BadInput, exit_cleanly
from finished_step import finish_step
from toy_clauses import Chance
from toy_sentences import random_sentence

SEED = 1
SIZES = {"train": 20_000, "valid": 500, "test": 500}
WORDS = range(4, 15)  # of the English sentence
GIVE_UP = 1_000  # sentences in a row that bring nothing new


def sentence_pairs(seed: int) -> Iterator[tuple[str, str]]:
    """Endless (English, German) pairs, each side new; BadInput when the grammar is used up."""
    chance = Chance(random.Random(seed))
    seen: set[str] = set()
    vain = 0
    while vain < GIVE_UP:
        sentence = random_sentence(chance)
        english, german = toy_english.say(sentence), toy_german.say(sentence)
        if len(english.split()) not in WORDS or english in seen or german in seen:
            vain += 1
            continue
        vain = 0
        seen |= {english, german}
        yield english, german
    raise BadInput("the toy grammar has no more new sentences: ask for a smaller corpus")


def write_splits(folder: Path, seed: int, sizes: dict[str, int]) -> None:
    """Write SPLIT.en and SPLIT.de for each of `sizes` (split: number of pairs)."""
    pairs = sentence_pairs(seed)
    for split in ("test", "valid", "train"):  # so that a longer train keeps the same test
        with (
            (folder / f"{split}.en").open("w", encoding="utf-8", newline="\n") as english_file,
            (folder / f"{split}.de").open("w", encoding="utf-8", newline="\n") as german_file,
        ):
            for english, german in islice(pairs, sizes[split]):
                english_file.write(english + "\n")
                german_file.write(german + "\n")
        print(f"[toy] {split}: {sizes[split]:,} pairs", file=sys.stderr)


def write_toy_corpus(
    output: Path, seed: int = SEED, sizes: dict[str, int] | None = None,
    source: str = "en", target: str = "de",
) -> None:
    """Fill the folder `output`, unless these very files of the grammar have done so before."""
    if {source, target} != {"en", "de"}:
        raise BadInput(f"the toy corpus has English and German (en, de), not {source}-{target}")
    sizes = sizes or SIZES
    if min(sizes.values()) < 1:
        raise BadInput("expected at least one pair in each of train, valid and test")
    finish_step(
        output,
        inputs=sorted(Path(__file__).resolve().parent.glob("toy*.py")),
        settings={"seed": seed, "sizes": sizes},
        work=lambda folder: write_splits(folder, seed, sizes),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True, type=Path, help="folder for the six text files")
    parser.add_argument("--seed", type=int, default=SEED, help="default %(default)s")
    for split, size in SIZES.items():
        parser.add_argument(f"--{split}", type=int, default=size, metavar="PAIRS",
                            help="default %(default)s")
    args = parser.parse_args()
    sizes = {split: getattr(args, split) for split in SIZES}
    write_toy_corpus(args.output, args.seed, sizes)


if __name__ == "__main__":
    exit_cleanly(main)
