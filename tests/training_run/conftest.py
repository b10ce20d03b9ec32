"""One small experiment by its recipes, trained in two starts, with all that can watch it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from experiments import recipe, sentence_pairs, write_text
from fairseq_commands import REPO

sys.path.append(str(Path(__file__).resolve().parent))  # report_reading
EPOCHS, EVERY = 15, 5
# Weights & Biases wants an account and the network: this writes down what it is given.
WANDB = """
import json, os, sys

def note(*call):
    with open(os.environ["WANDB_CALLS"], "a") as file:
        file.write(json.dumps(call) + "\\n")

def init(**options):
    note("init", options)

def log(values, step):
    note("log", values, step)

class config:
    update = staticmethod(lambda settings: note("config", sorted(settings)))
"""


@dataclass(frozen=True)
class Watched:
    """A trained experiment with a score, and what was sent elsewhere while it trained.

    Its translations are made up: references, of which three of four miss words.
    """

    folder: Path
    tensorboard: Path
    wandb: list[list]


@pytest.fixture(scope="session")
def watched(made_once) -> Watched:
    """Trained to epoch 10 of 15, stopped there, and gone on with; validated every 5 epochs."""
    place = made_once("watched", run_recipes)
    calls = (place / "wandb.jsonl").read_text().splitlines()
    return Watched(place / "toy", place / "tensorboard", [json.loads(call) for call in calls])


@pytest.fixture(scope="module")
def log(watched) -> str:
    """The text of its train.log."""
    return (watched.folder / "train.log").read_text()


def run_recipes(place: Path) -> None:
    """Prepares, trains and scores, all of it below ``place``."""
    (place / "stubs").mkdir()
    (place / "stubs/wandb.py").write_text(WANDB)
    knobs = {"RUNS": place, "VOCAB_SIZE": 300, "WARMUP_UPDATES": 100, "LR_FACTOR": 0.3}
    knobs |= {"MAX_TOKENS": 512, "EVAL_BLEU": 1}
    stubs = {"WANDB_CALLS": place / "wandb.jsonl", "PYTHONPATH": f"{place / 'stubs'}:{REPO}"}
    knobs |= write_text(place, sentence_pairs(seed=5), 600, 40, 30)
    recipe("prepare", **knobs)
    flags = ["--validate-interval", EVERY, "--save-interval", EVERY, "--log-interval", 5]
    flags += ["--d-model", 64, "--d-ff", 128]
    flags += ["--tensorboard-logdir", place / "tensorboard", "--wandb-project", "transformer"]
    for epochs in (EPOCHS - EVERY, EPOCHS):
        recipe("train", *flags, MAX_EPOCH=epochs, **knobs, **stubs)
    references = (place / "toy/raw/test.de").read_text().splitlines()
    translations = [" ".join(line.split()[i % 4 :]) for i, line in enumerate(references)]
    (place / "toy/hypotheses.txt").write_text("".join(f"{line}\n" for line in translations))
    recipe("score", **knobs)
