"""Whole runs, from raw text to a score, end as an undisturbed one though killed ten times."""

import itertools
import json
import os
import random
import signal
import subprocess

import pytest
import torch
from recipe_environment import REPO, environment

KNOBS = {
    **{"VOCAB_SIZE": "500", "MAX_EPOCH": "5", "SAVE_UPDATES": "4", "AVERAGE": "2"},
    **{"MAX_TOKENS": "1500", "WARMUP_UPDATES": "20", "WORKERS": "1"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Parallel text of the toy grammar, as the recipes take it."""
    from toy.corpus import sentence_pairs

    folder = tmp_path_factory.mktemp("text")
    pairs = sentence_pairs(seed=6)
    for split, count in (("train", 1200), ("valid", 40), ("test", 40)):
        texts = zip(*itertools.islice(pairs, count), strict=True)
        for side, text in zip(("en", "de"), texts, strict=True):
            (folder / f"{split}.{side}").write_text("\n".join(text) + "\n", encoding="utf-8")
    return {split.upper(): str(folder / split) for split in ("train", "valid", "test")}


def start(runs, files):
    return subprocess.Popen(
        [REPO / "recipes/run.sh", "toy"],
        env=environment(RUNS=str(runs), **KNOBS, **files),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(runs, files):
    process = start(runs, files)
    output = process.communicate(timeout=600)[0]
    assert process.returncode == 0, output[-3000:]


def results(runs):
    folder = runs / "toy"
    weights = {
        name: torch.load(folder / "checkpoints" / name, weights_only=False)["model"]
        for name in ("checkpoint_last.pt", "averaged.pt")
    }
    texts = [(folder / name).read_text() for name in ("hypotheses.txt", "score.json")]
    texts = [text.replace(str(runs), "") for text in texts]  # score.json names the reference
    assert b"\0" not in (folder / "train.log").read_bytes()
    return weights, texts, json.loads((folder / "manifest.json").read_text())


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(t, other[n]) for n, t in one.items())


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_sixty_kills(tmp_path, files):
    finish(tmp_path / "undisturbed", files)
    weights, texts, manifest = results(tmp_path / "undisturbed")
    chance = random.Random(4)
    for i in range(6):
        folder = tmp_path / str(i)
        for _ in range(10):
            process = start(folder, files)
            try:
                process.communicate(timeout=chance.uniform(0.5, 14))
            except subprocess.TimeoutExpired:
                number = chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
                whole_group = number == signal.SIGKILL and chance.random() < 0.5
                (os.killpg if whole_group else os.kill)(process.pid, number)
                process.communicate()
        finish(folder, files)
        found = results(folder)
        assert all(same(found[0][name], weights[name]) for name in weights), i
        assert found[1] == texts, i
        assert found[2].keys() == manifest.keys()
