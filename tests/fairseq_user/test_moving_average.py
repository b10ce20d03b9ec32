"""``--store-ema`` and ``average --ema``."""

import pytest
import torch
from fairseq_commands import generate, run, train

from transformer_plugin.checkpoints.safe_loading import load

DECAY, UPDATES = 0.7, 4


@pytest.fixture(scope="module", params=["fp32", "bf16"])
def folder(request, data, tmp_path_factory):
    """A run with a checkpoint an update."""
    folder = tmp_path_factory.mktemp(request.param)
    precision = ["--bf16"] if request.param == "bf16" else []
    train(
        *(data, folder, "--store-ema", "--ema-decay", str(DECAY), "--max-update", str(UPDATES)),
        *("--save-interval-updates", "1", "--no-last-checkpoints", *precision),
    )
    return folder


def test_every_weight_is_the_mean_by_its_formula_tied_ones_too(folder):
    states = [load(folder / f"checkpoint_1_{n}.pt") for n in range(1, UPDATES + 1)]
    key = "ema_fp32_params" if "bf16" in folder.name else "ema"
    rounding = 2**-8 if "bf16" in folder.name else 1e-6  # of the weights that the average is of
    found = states[-1]["extra_state"][key]
    assert found.keys() == states[-1]["model"].keys()
    for name, tensor in found.items():
        expected = states[0]["extra_state"][key][name].double()
        for state in states[1:]:
            expected = DECAY * expected + (1 - DECAY) * state["model"][name].double()
        largest = rounding * max(float(s["model"][name].abs().max()) for s in states)
        torch.testing.assert_close(tensor.double(), expected, atol=largest, rtol=0, msg=name)
    assert found["encoder.embed_tokens.weight"].dtype == torch.float32


def test_average_takes_the_moving_averages(folder, data, tmp_path):
    last = folder / f"checkpoint_1_{UPDATES}.pt"
    run("transformer-plugin", "average", "--inputs", last, "--ema", "--output", tmp_path / "a.pt")
    key = "ema_fp32_params" if "bf16" in folder.name else "ema"
    expected, state = load(last)["extra_state"][key], load(tmp_path / "a.pt")
    assert all(torch.equal(state["model"][name], t) for name, t in expected.items())
    assert not {"ema", "ema_fp32_params"} & state["extra_state"].keys()
    if key == "ema":
        assert generate(data, tmp_path / "a.pt", "--beam", "1").stdout.count("\nH-") == 30


def test_a_checkpoint_without_one_is_refused(checkpoint, tmp_path):
    words = ("average", "--inputs", checkpoint, "--ema", "--output", tmp_path / "a.pt")
    done = run("transformer-plugin", *words, status=1)
    assert "holds no moving average: train with --store-ema" in done.stderr
    assert not (tmp_path / "a.pt").exists()
