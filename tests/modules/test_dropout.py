"""Dropout: its rate, its scale and its gradient."""

import pytest
import torch

from transformer_plugin.modules.dropout import dropout, kept, residual_dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_each_element_is_dropped_with_the_rate(rate, dtype):
    torch.manual_seed(0)
    mask = kept(torch.empty(1000, 999, dtype=dtype), rate)
    assert mask.dtype == dtype and set(mask.unique().tolist()) == {0.0, 1.0}
    dropped = 1 - mask.float()
    deviation = (rate * (1 - rate) / dropped.numel()) ** 0.5
    assert abs(dropped.mean().item() - rate) < 5 * deviation
    for lane in range(4):  # elements that share a random number are independent
        assert abs(dropped.flatten()[lane::4].mean().item() - rate) < 10 * deviation
    pairs = (dropped.flatten()[:-1] * dropped.flatten()[1:]).mean().item()
    assert pairs == pytest.approx(rate**2, rel=0.03)


def test_what_is_kept_is_scaled_and_gradients_follow():
    x, y = torch.ones(40, 50, requires_grad=True), torch.full((40, 50), 2.0, requires_grad=True)
    out = residual_dropout(x, y, 0.2)
    assert torch.equal(out.detach().unique(), torch.tensor([1.0, 1.0 + 2 / 0.8]))
    out.sum().backward()
    assert x.grad.eq(1).all()
    torch.testing.assert_close(y.grad, (out.detach() > 1) * (1 / 0.8))


def test_the_seed_decides():
    def draw():
        torch.manual_seed(5)
        return dropout(torch.ones(100), 0.4)

    assert torch.equal(draw(), draw())


def test_rate_zero_changes_nothing():
    x = torch.randn(5)
    assert dropout(x, 0.0) is x
    assert torch.equal(residual_dropout(x, x, 0.0), 2 * x)
