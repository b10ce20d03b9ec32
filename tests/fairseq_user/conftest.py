"""A corpus of a few sentences, binarised once, and a small model trained on it."""

from __future__ import annotations

import random

import pytest
from fairseq_commands import run, train


def write_corpus(folder):
    """Files of 200, 20 and 30 pairs: a sentence and the same backwards, in other words."""
    words = random.Random(1)
    for split, pairs in (("train", 200), ("valid", 20), ("test", 30)):
        with (
            (folder / f"{split}.de").open("w") as source,
            (folder / f"{split}.en").open("w") as target,
        ):
            for _ in range(pairs):
                numbers = [words.randrange(40) for _ in range(words.randrange(2, 9))]
                print(*(f"w{n}" for n in numbers), file=source)
                print(*(f"{'v' if n % 3 else 'w'}{n}" for n in reversed(numbers)), file=target)


@pytest.fixture(scope="session")
def corpus(made_once):
    """Text, and in ``data/`` what fairseq-preprocess makes of it."""

    def make(folder):
        write_corpus(folder)
        run(
            *("fairseq-preprocess", "-s", "de", "-t", "en", "--joined-dictionary"),
            *("--trainpref", folder / "train", "--validpref", folder / "valid"),
            *("--testpref", folder / "test", "--destdir", folder / "data"),
        )

    return made_once("fairseq_user", make)


@pytest.fixture(scope="session")
def data(corpus):
    return corpus / "data"


@pytest.fixture(scope="session")
def checkpoint(data, made_once):
    """Of the plugin's own task, after 12 updates."""
    folder = made_once("fairseq_user_run", lambda folder: train(data, folder))
    return folder / "checkpoint_last.pt"
