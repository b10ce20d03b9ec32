"""Running the steps of data-prep as a user does, and small corpora to run them on."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_commands import REPO, environment

sys.path.insert(0, str(REPO / "data-prep"))  # the grammar's modules
sys.path.insert(0, str(Path(__file__).resolve().parent))  # corpus_files and its like
from corpus_files import PAIR

DATA_PREP = REPO / "data-prep"
SPLITS = ("train", "valid", "test")


@pytest.fixture
def shared_data() -> Path:
    """The folder of real corpora that lies beside the repository, where there is one."""
    folder = REPO.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}")
    return folder


@pytest.fixture
def prepare(tmp_path):
    """prepare("toy", *arguments, NAME=VALUE) runs recipes/prepare.sh below tmp_path/runs."""

    def run(*arguments, **knobs) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", str(REPO / "recipes/prepare.sh"), *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment() | {"RUNS": str(tmp_path / "runs")} | knobs,
        )

    return run


@pytest.fixture
def step(tmp_path):
    """step("clean", *arguments, NAME=VALUE) runs data-prep/clean.py and returns what it said."""

    def run(name: str, *arguments, **knobs) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["python3", str(DATA_PREP / f"{name}.py"), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment() | knobs,
        )

    return run


@pytest.fixture
def refused(step):
    """refused("clean", *arguments) expects status 2 and one message; returns the message."""

    def run(name: str, *arguments, **environment) -> str:
        result = step(name, *arguments, **environment)
        assert result.returncode == 2, result.stderr
        assert "Traceback" not in result.stderr
        return result.stderr

    return run


@pytest.fixture
def write_corpus(tmp_path):
    """write_corpus(folder, train_en=[...], ...) writes six files; what is not given is 3 lines."""

    def write(folder: str, **lines) -> Path:
        path = tmp_path / folder
        path.mkdir(parents=True, exist_ok=True)
        for split in SPLITS:
            for language in ("en", "de"):
                text = lines.get(f"{split}_{language}")
                if text is None:
                    text = [f"{split} number {n} here" for n in range(3)]
                data = [line if isinstance(line, bytes) else line.encode() for line in text]
                (path / f"{split}.{language}").write_bytes(b"".join(line + b"\n" for line in data))
        return path

    return write


@pytest.fixture
def mirror(tmp_path) -> Path:
    """Where a test may write a mirror of the public corpora (corpus_mirror)."""
    return tmp_path / "mirror"


@pytest.fixture(scope="module")
def sentences():
    """sentences(count, more) makes lines of made-up words with umlauts and rare letters."""
    chance = random.Random(5)
    words = ["Straße", "über", "haus", "cat", "dog's", "naïve", "3,5", "…", "(so)", "☃", "quick"]

    def make(count, more=()):
        return [" ".join(chance.choices([*words, *more], k=6)) for _ in range(count)]

    return make


@pytest.fixture
def clean_text(write_corpus, sentences) -> Path:
    """A corpus of 200 pairs; test has letters that train has not."""
    texts = {
        f"{split}_{side}": sentences(
            200 if split == "train" else 20, ["žaba"] if split == "test" else []
        )
        for split in SPLITS
        for side in ("en", "de")
    }
    return write_corpus("clean", **texts)


@pytest.fixture(params=["sentencepiece", "moses-bpe"])
def kind(request) -> str:
    """Each kind of subwords."""
    return request.param


@pytest.fixture
def learned(step, clean_text, tmp_path, kind) -> Path:
    """What subwords.py has learnt from clean_text."""
    result = step(
        "subwords",
        "--input",
        clean_text,
        "--output",
        tmp_path / "subwords",
        *PAIR,
        "--kind",
        kind,
        "--vocab-size",
        60,
        "--merges",
        20,
    )
    assert result.returncode == 0, result.stderr
    return tmp_path / "subwords"
