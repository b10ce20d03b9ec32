"""Write the toy corpus: English sentences of a small grammar and their German translations.

The German has properties that a translation model must learn: gender, number, case, adjective
endings, verb-second and verb-final order, separable verbs. Each English sentence has one
translation, no sentence occurs twice, and none of valid or test is in train, on either side. A seed
gives the same bytes on every machine.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from steps.errors import BadInput
from steps.step import run_step
from toy import english, german
from toy.clauses import Chance
from toy.sentences import random_sentence
from toy.syntax import Sentence

SEED = 1
SIZES = {"train": 20_000, "valid": 500, "test": 500}
WORDS = range(4, 15)  # lengths of the English sentence
MAX_DUPLICATES = 1_000  # in a row, before the grammar counts as exhausted


def new_sentences(seed: int) -> Iterator[tuple[Sentence, str, str]]:
    """Endless sentences with their English and German, both new; BadInput if the grammar has no
    more."""
    chance = Chance(random.Random(seed))
    seen: set[str] = set()
    duplicates = 0
    while duplicates < MAX_DUPLICATES:
        sentence = random_sentence(chance)
        en, de = english.say(sentence), german.say(sentence)
        if len(en.split()) not in WORDS or en in seen or de in seen:
            duplicates += 1
            continue
        duplicates = 0
        seen |= {en, de}
        yield sentence, en, de
    raise BadInput("the toy grammar has no more new sentences: ask for a smaller corpus")


def sentence_pairs(seed: int) -> Iterator[tuple[str, str]]:
    """The (English, German) of new_sentences."""
    for _, en, de in new_sentences(seed):
        yield en, de


def write_splits(folder: Path, seed: int, sizes: dict[str, int]) -> None:
    """Write SPLIT.en and SPLIT.de for each of `sizes` (split: number of pairs)."""
    pairs = sentence_pairs(seed)
    for split in ("test", "valid", "train"):  # a longer train keeps the same test
        with (
            (folder / f"{split}.en").open("w", encoding="utf-8", newline="\n") as source,
            (folder / f"{split}.de").open("w", encoding="utf-8", newline="\n") as target,
        ):
            for en, de in islice(pairs, sizes[split]):
                source.write(en + "\n")
                target.write(de + "\n")
    counts = ", ".join(f"{split} {size:,}" for split, size in sizes.items())
    print(f"[raw] pairs: {counts}", file=sys.stderr)


def write_toy_corpus(
    output: Path,
    seed: int = SEED,
    sizes: dict[str, int] | None = None,
    source: str = "en",
    target: str = "de",
) -> None:
    """Fill the folder `output`, unless the same grammar has filled it before."""
    if {source, target} != {"en", "de"}:
        raise BadInput(f"the toy corpus has English and German (en, de), not {source}-{target}")
    sizes = sizes or SIZES
    if min(sizes.values()) < 1:
        raise BadInput("expected at least one pair in each of train, valid and test")
    run_step(
        output,
        inputs=sorted(Path(__file__).resolve().parent.glob("*.py")),
        settings={"seed": seed, "sizes": sizes},
        work=lambda folder: write_splits(folder, seed, sizes),
    )
