"""Small experiments by the recipes, each made in a folder of its own."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fairseq_commands import REPO, run

sys.path.append(str(REPO / "data-prep"))
from toy.corpus import sentence_pairs

WORDS = {
    "the": "die", "cat": "Katze", "dog's": "Hündin", "sees": "sieht", "naïve": "naive",
    "“house”": "„Haus“", "slowly": "langsam", "and": "und", "quick": "schnelle", "(so)": "(so)",
}  # fmt: skip
EPOCHS = 5


def recipe(verb: str, *flags: object, **knobs: object) -> subprocess.CompletedProcess:
    """Runs a recipe of the toy experiment."""
    variables = {name: str(value) for name, value in knobs.items()}
    return run(f"recipes/{verb}.sh", "toy", *flags, env=variables)


def write_text(folder: Path, pairs: Iterator[tuple[str, str]], *counts: int) -> dict[str, Path]:
    """Writes so many pairs each for train, valid and test; the variables that name them."""
    prefixes = {name: folder / name for name in ("train", "valid", "test")}
    for prefix, count in zip(prefixes.values(), counts, strict=True):
        texts = zip(*itertools.islice(pairs, count), strict=True)
        for language, lines in zip(("en", "de"), texts, strict=True):
            text = "".join(f"{line}\n" for line in lines)
            prefix.with_suffix(f".{language}").write_text(text, encoding="utf-8")
    return {name.upper(): prefix for name, prefix in prefixes.items()}


def run_toy(folder: Path) -> None:
    """The toy experiment from text to score, with one epoch of training; ``screen`` has what it
    showed."""
    done = recipe("run", RUNS=folder, MAX_EPOCH=1, AVERAGE=1, CUDA_VISIBLE_DEVICES="")
    (folder / "screen").write_text(done.stdout + done.stderr)


def prepare_grammar(folder: Path) -> None:
    """1,200 pairs of the toy grammar, binarised."""
    files = write_text(folder, sentence_pairs(seed=5), 1200, 40, 40)
    recipe("prepare", RUNS=folder / "runs", VOCAB_SIZE=500, **files)


def train_on_words(folder: Path) -> None:
    """A model that translates word by word, its subwords of the kind that the folder is named."""
    kind, chance = folder.name, random.Random(3)
    drawn = (chance.choices(list(WORDS), k=chance.randint(2, 8)) for _ in itertools.count())
    pairs = ((" ".join(x), " ".join(WORDS[word] for word in x)) for x in drawn)
    files = write_text(folder, ((f"{x} .", f"{y} .") for x, y in pairs), 600, 20, 30)
    knobs = {"RUNS": folder, "SUBWORDS": kind, "VOCAB_SIZE": 70, "MERGES": 30, **files}
    knobs |= {"LOWERCASE": int(kind == "moses-bpe"), "MAX_TOKENS": 512, "MAX_EPOCH": EPOCHS}
    recipe("prepare", **knobs)
    flags = ("--cpu", "--d-model", 64, "--d-ff", 128, "--disable-validation")
    recipe("train", *flags, "--save-interval", EPOCHS, WARMUP_UPDATES=100, LR_FACTOR=0.5, **knobs)
    last = folder / "toy/checkpoints/checkpoint_last.pt"
    shutil.copy(last, last.with_name("averaged.pt"))
