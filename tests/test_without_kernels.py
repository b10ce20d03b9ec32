"""Without the folder ``kernels`` everything works as before, only slower."""

import shutil

import pytest
import torch
from fairseq_commands import REPO, generate, run, train, training


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A copy of the package without kernels, as a --user-dir."""
    folder = tmp_path_factory.mktemp("bare") / "transformer_plugin"
    ignored = shutil.ignore_patterns("__pycache__", "kernels")
    shutil.copytree(REPO / "transformer_plugin", folder, ignore=ignored)
    return folder


def hypotheses(done):
    return sorted(line for line in done.stdout.splitlines() if line.startswith("D-"))


def test_it_trains_and_translates_the_same(toy, tmp_path, bare):
    flags = ("--dropout", 0, "--max-update", 6)  # random numbers differ
    alone = {"PYTHONPATH": str(bare.parent)}
    train(toy / "data-bin", tmp_path / "with", *flags)
    run(*training(toy / "data-bin", tmp_path / "without", *flags, "--user-dir", bare), env=alone)
    one, two = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=False)["model"]
        for name in ("with", "without")
    )
    for name, tensor in one.items():  # Adam's first steps are of one size, whatever the gradient's
        assert (two[name] - tensor).norm() <= 1e-3 + 1e-3 * tensor.norm(), name
    checkpoint = toy / "checkpoints/averaged.pt"
    fast = generate(toy / "data-bin", checkpoint, "--gen-subset", "valid")
    slow = run(
        *("fairseq-generate", toy / "data-bin", "--user-dir", bare, "--path", checkpoint, "--cpu"),
        *("--task", "vaswani_translation", "--remove-bpe", "sentencepiece"),
        *("--gen-subset", "valid"),
        env=alone,
    )
    assert [line.split("\t")[2] for line in hypotheses(fast)] == [
        line.split("\t")[2] for line in hypotheses(slow)
    ]
