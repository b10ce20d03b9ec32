"""fairseq-train's precision flags on a CPU: the same losses as in fp32, and runs that go on."""

import re

import pytest
import torch
from fairseq_commands import train

# Without dropout, whose draws depend on the shapes that a precision makes.
LOG = ("--dropout", "0", "--no-progress-bar", "--log-format", "simple", "--log-interval", "1")
ROUNDING = 0.008  # relative to the loss: bf16 has 8 binary digits
# The first rates are so small that a weight in bf16 does not move until its master has gone far.
MOVING = range(8, 13)


def losses(done):
    found = re.findall(r"train_inner \| .* loss=([\d.]+), .*num_updates=(\d+)", done.stdout)
    return {int(update): float(loss) for loss, update in found}


@pytest.fixture(scope="module")
def in_fp32(toy, tmp_path_factory):
    return losses(train(toy / "data-bin", tmp_path_factory.mktemp("fp32"), *LOG))


@pytest.mark.parametrize(
    "flags",
    [["--bf16", "--clip-norm", "1000"], ["--bf16", "--memory-efficient-bf16"]],
    ids=" ".join,
)
def test_losses_are_those_of_fp32(toy, tmp_path, in_fp32, flags):
    found = losses(train(toy / "data-bin", tmp_path, *LOG, *flags))
    assert found.keys() == in_fp32.keys() == set(range(1, 13))
    for update in (1, *MOVING):
        assert found[update] == pytest.approx(in_fp32[update], rel=ROUNDING), update
    assert found != in_fp32  # the flag does something
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert all(tensor.isfinite().all() for tensor in state["model"].values())


def test_accumulated_and_clipped_updates_go_on_in_bf16(toy, tmp_path):
    flags = (*LOG, "--bf16", "--update-freq", "2", "--clip-norm", "0.5")
    whole = losses(train(toy / "data-bin", tmp_path / "whole", *flags))
    train(toy / "data-bin", tmp_path / "parts", *flags, "--max-update", "6")
    rest = losses(train(toy / "data-bin", tmp_path / "parts", *flags))
    assert rest.keys() == set(range(7, 13))
    assert rest == {update: whole[update] for update in rest}
    one, two = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=False)["model"]
        for name in ("whole", "parts")
    )
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    # fp32 masters, of which bf16 would lose the last digits
    assert any(not torch.equal(tensor, tensor.bfloat16().float()) for tensor in one.values())


def test_activations_computed_twice_change_no_loss(toy, tmp_path):
    flags = ("--bf16", "--no-progress-bar", "--log-format", "simple", "--log-interval", "1")
    kept = losses(train(toy / "data-bin", tmp_path / "kept", *flags))
    twice = losses(train(toy / "data-bin", tmp_path / "twice", *flags, "--checkpoint-activations"))
    assert twice == kept and kept
