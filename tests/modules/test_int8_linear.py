"""A linear map in 8-bit integers, against sums of integers in Python."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_plugin.modules.int8_linear import Int8Linear, quantise


@pytest.mark.parametrize(
    "x",
    [torch.randn(5, 7), torch.randn(3, 4, 2) + 10, -torch.rand(9), torch.rand(6).bfloat16()],
    ids=["both", "above", "below", "bfloat16"],
)
def test_a_number_is_within_half_a_step(x):
    steps, scale, zero_point = quantise(x)
    assert steps.dtype == torch.uint8 and steps.shape == x.shape
    assert ((steps.float() - zero_point) * scale - x.float()).abs().max() <= 0.501 * scale
    low, high = min(x.min().item(), 0.0), max(x.max().item(), 0.0)
    assert_close(scale.item(), (high - low) / 127)


def test_zero_is_exact_and_may_be_all_there_is():
    steps, _scale, zero_point = quantise(torch.tensor([-1.0, 0.0, 2.345]))
    assert steps[1] == zero_point
    layer = nn.Linear(4, 3)
    assert torch.equal(Int8Linear(layer)(torch.zeros(2, 4)), layer.bias.expand(2, 3))


@pytest.mark.parametrize("bias", [True, False])
def test_it_adds_up_integers(bias):
    layer, x = nn.Linear(6, 4, bias=bias), torch.randn(2, 3, 6)
    found = Int8Linear(layer)(x)
    steps, scale, zero_point = quantise(x)
    for row in range(2):
        for column in range(3):
            for i, weights in enumerate(layer.weight.tolist()):
                unit = max(map(abs, weights)) / 127
                inputs = [step - int(zero_point) for step in steps[row, column].tolist()]
                total = sum(round(w / unit) * step for w, step in zip(weights, inputs, strict=True))
                expected = total * unit * scale.item() + (layer.bias[i].item() if bias else 0.0)
                assert found[row, column, i].item() == pytest.approx(expected, abs=1e-5)


def test_it_is_a_rounding_of_the_map():
    layer, x = nn.Linear(64, 32), torch.randn(10, 64)
    exact, found = layer(x), Int8Linear(layer)(x)
    assert not found.equal(exact)
    assert (found - exact).abs().max() < 0.03 * exact.abs().max()
    assert Int8Linear(layer)(x.bfloat16()).dtype == torch.bfloat16


def test_no_rows_are_no_rows():
    assert Int8Linear(nn.Linear(6, 4))(torch.empty(0, 6)).shape == (0, 4)
