"""Small experiments, from own files to a checkpoint, by the recipes."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
WORDS = {
    "the": "die", "cat": "Katze", "dog's": "Hündin", "sees": "sieht", "naïve": "naive",
    "“house”": "„Haus“", "slowly": "langsam", "and": "und", "quick": "schnelle", "(so)": "(so)",
}


@pytest.fixture(scope="session")
def recipe():
    """recipe("train.sh", "toy", NAME=VALUE) runs a recipe; input= is its standard input."""

    def run(*command, status=0, input="", **environment) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [str(REPO / "recipes" / command[0]), *map(str, command[1:])],
            env=os.environ
            | {"PATH": f"{BIN}:{os.environ['PATH']}", "VIRTUAL_ENV": str(BIN.parent)}
            | {name: str(value) for name, value in environment.items()},
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == status, (done.stdout + done.stderr).decode()[-3000:]
        return done

    return run


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, recipe):
    """prepared(kind) is the folder of an experiment trained a little on made-up sentences."""
    made: dict[str, Path] = {}

    def sentences(chance: random.Random, count: int) -> list[list[str]]:
        return [chance.choices(list(WORDS), k=chance.randint(2, 8)) for _ in range(count)]

    def prepare(kind: str) -> Path:
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            chance = random.Random(3)
            for split, count in (("train", 600), ("valid", 20), ("test", 30)):
                pairs = sentences(chance, count)
                for language, of in (("en", str), ("de", WORDS.__getitem__)):
                    lines = "".join(" ".join(map(of, pair)) + " .\n" for pair in pairs)
                    (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
            knobs = {"RUNS": folder, "SUBWORDS": kind, "VOCAB_SIZE": 70, "MERGES": 30}
            knobs |= {split.upper(): folder / split for split in ("train", "valid", "test")}
            knobs |= {"LOWERCASE": int(kind == "moses-bpe"), "MAX_EPOCH": 15}
            knobs |= {"WARMUP_UPDATES": 100, "LR_FACTOR": 0.5, "MAX_TOKENS": 512}
            recipe("prepare.sh", "toy", **knobs)
            recipe("train.sh", "toy", "--cpu", "--disable-validation", "--save-interval", "15",
                   **knobs)
            last = folder / "toy/checkpoints/checkpoint_last.pt"
            shutil.copy(last, last.with_name("averaged.pt"))
            made[kind] = folder / "toy"
        return made[kind]

    return prepare


@pytest.fixture(params=["sentencepiece", "moses-bpe"])
def run_folder(request, prepared) -> Path:
    """An experiment of each kind of subwords."""
    return prepared(request.param)
