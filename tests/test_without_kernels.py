"""Without the folder ``kernels`` everything works as before, only slower."""

import shutil
import sys

import pytest
import torch
from fairseq_commands import REPO, generate, run, train, training

# An editable install finds each submodule of the package, in the repository too.
NO_EDITABLE_INSTALLS = """
import sys
sys.meta_path = [each for each in sys.meta_path if "__editable__" not in each.__module__]
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A copy of the package without kernels, as a --user-dir."""
    folder = tmp_path_factory.mktemp("bare") / "transformer_plugin"
    ignored = shutil.ignore_patterns("__pycache__", "kernels")
    shutil.copytree(REPO / "transformer_plugin", folder, ignore=ignored)
    (folder.parent / "sitecustomize.py").write_text(NO_EDITABLE_INSTALLS, encoding="utf-8")
    return folder


def test_the_copy_has_no_kernels(bare):
    found = run(
        *(sys.executable, "-P", "-c"),
        "import importlib.util as i, transformer_plugin as t;"
        "print(t.__file__, i.find_spec('transformer_plugin.kernels'))",
        env={"PYTHONPATH": str(bare.parent)},
    )
    assert found.stdout.split() == [str(bare / "__init__.py"), "None"]


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
