"""The feed-forward network against equation (2)."""

import torch

from transformer_plugin.modules.feed_forward import PositionwiseFeedForward


def product(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_equation_2():
    torch.manual_seed(0)
    block = PositionwiseFeedForward(4, 7).double()
    x = torch.randn(3, 4, dtype=torch.float64)
    w_1, b_1, w_2, b_2 = (p.tolist() for p in block.parameters())
    for row, out in zip(x.tolist(), block(x).tolist(), strict=True):
        hidden = [max(0.0, product(row, w) + b) for w, b in zip(w_1, b_1, strict=True)]
        expected = [product(hidden, w) + b for w, b in zip(w_2, b_2, strict=True)]
        torch.testing.assert_close(torch.tensor(out), torch.tensor(expected))
