"""On a full disk a step fails and leaves nothing, also if only the end of a file does not fit."""

from __future__ import annotations

import random
import subprocess

import pytest
from corpus_files import PAIR, leftovers
from fairseq_commands import REPO, environment


@pytest.fixture
def texts(write_corpus):
    """Short lines of 100 long words: what steps write for them is more than what they read."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=30)) for _ in range(100)]
    return write_corpus("clean", train_en=words * 20, train_de=words * 20)


def fails_without(size, name, *arguments):
    """Runs a step where files may have fewer than `size` bytes, in whole KiB."""
    command = ["python3", REPO / f"data-prep/{name}.py", *arguments, *PAIR, "--workers", "1"]
    done = subprocess.run(
        ["bash", "-c", f'ulimit -f {(size - 1) // 1024}; exec "$@"', "step", *map(str, command)],
        env=environment(forks=False),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"{name}.py: File too large")


def test_a_model_and_an_index_are_whole_or_not_there(step, texts, tmp_path):
    learn = ("--input", texts, "--vocab-size", 1500, "--output")
    assert step("subwords", *learn, tmp_path / "subwords", *PAIR).returncode == 0
    size = (tmp_path / "subwords/joint.model").stat().st_size
    fails_without(size, "subwords", *learn, tmp_path / "cut")

    encode = ("--input", texts, "--model", tmp_path / "subwords", "--output")
    assert step("binarise", *encode, tmp_path / "data-bin", *PAIR).returncode == 0
    size = (tmp_path / "data-bin/train.en-de.en.idx").stat().st_size
    fails_without(size, "binarise", *encode, tmp_path / "cut")
    assert not (tmp_path / "cut").exists() and not leftovers(tmp_path)
