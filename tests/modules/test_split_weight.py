"""A float32 weight from its rounding and the rest: to the bit, and no more memory than that."""

import pytest
import torch
from torch import nn

from transformer_plugin.modules.split_weight import SplitWeight


def split(exact):
    weight = SplitWeight(nn.Parameter(torch.zeros(exact.shape, dtype=torch.bfloat16)))
    weight.set(exact)
    return weight


def numbers():
    """Of all sizes, and those that are special."""
    torch.manual_seed(0)
    usual = torch.randn(50, 400) * 10.0 ** torch.randint(-30, 30, (50, 400))
    usual[0, :6] = torch.tensor([0.0, -0.0, 1e-44, -1e-40, 3.4e38, torch.inf])
    return usual


def test_of_a_bf16_weight_it_is_that():
    rounded = nn.Parameter(numbers().bfloat16())
    assert SplitWeight(rounded).exact().equal(rounded.float())


def test_every_bit_is_kept():
    exact = numbers()
    assert split(exact).exact().view(torch.int32).equal(exact.view(torch.int32))


def test_the_model_has_it_rounded_as_torch_rounds():
    exact = numbers()
    assert split(exact).rounded.equal(exact.bfloat16())


@pytest.mark.parametrize("sign", [1, -1])
def test_half_way_it_is_rounded_away_from_zero(sign):
    step = 2.0**-7  # between the numbers of bf16 from 1 to 2
    exact = sign * (1 + step * (torch.arange(100) + 0.5))
    weight = split(exact)
    assert weight.rounded.float().equal(sign * (1 + step * (torch.arange(100) + 1)))
    assert weight.exact().equal(exact)


def test_an_optimizer_takes_it_for_a_float32_weight_but_cannot_use_it():
    weight = split(torch.ones(30, 20))
    assert (weight.dtype, weight.shape, weight.is_leaf) == (torch.float32, (30, 20), True)
    assert weight.isnan().all()
    assert weight.untyped_storage().nbytes() == 4
    assert weight.rest.nbytes == 2 * 30 * 20
