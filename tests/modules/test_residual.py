"""Residual connection, normalisation and where dropout acts, sections 3.1 and 5.4."""

import pytest
import torch
from torch import nn

from transformer_plugin.modules.layers import EncoderLayer, LayerShape
from transformer_plugin.modules.residual import Residual

D, EPS = 6, 1e-6


def layer_norm(x):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) / (variance + EPS).sqrt()


def test_norm_follows_the_sum_in_the_paper_and_precedes_the_sub_layer_in_pre_norm():
    torch.manual_seed(0)
    x = torch.randn(5, D)
    post, pre = (Residual(D, 0.0, pre_norm, EPS) for pre_norm in (False, True))
    torch.testing.assert_close(post(x, torch.sin), layer_norm(x + x.sin()))
    torch.testing.assert_close(pre(x, torch.sin), x + layer_norm(x).sin())


def test_epsilon_is_added_to_the_variance():
    x = torch.tensor([[1e-3, -1e-3]])
    residual = Residual(2, 0.0, False, EPS)
    expected = 1e-3 / (1e-6 + 1e-6) ** 0.5
    torch.testing.assert_close(residual(x, torch.zeros_like), torch.tensor([[expected, -expected]]))


def test_dropout_acts_on_the_sub_layers_output_alone_and_in_training_alone():
    torch.manual_seed(0)
    residual = Residual(D, 0.5, True, EPS)
    x = torch.full((200, D), 3.0)
    out = residual(x, torch.ones_like)
    assert set(out.unique().tolist()) == {3.0, 5.0}  # x + 0, and x + 1 / (1 - 0.5)
    assert residual.eval()(x, torch.ones_like).eq(4).all()


class TwiceNorm(nn.LayerNorm):
    """What a researcher may put in a norm's place."""

    def forward(self, x):
        return 2 * super().forward(x)


def twice(_module, _inputs, result):
    return 2 * result


@pytest.mark.parametrize("change", ["subclass", "hook", "method"])
def test_a_changed_norm_is_the_one_that_runs(change):
    residual = Residual(32, 0.0, False, EPS)
    x = torch.randn(5, 32, requires_grad=True)
    (expected,) = torch.autograd.grad((2 * residual(x, torch.sin)).square().sum(), x)
    if change == "subclass":
        residual.norm = TwiceNorm(32, eps=EPS)
    elif change == "hook":
        residual.norm.register_forward_hook(twice)
    else:
        plain = residual.norm.forward
        residual.norm.forward = lambda x: 2 * plain(x)
    (found,) = torch.autograd.grad(residual(x, torch.sin).square().sum(), x)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_a_result_may_be_changed_in_place():
    """As a hook may do, to try something: the gradients are those of the formula."""
    torch.manual_seed(0)
    shape = LayerShape(32, 64, 2, dropout=0.0)
    layer = EncoderLayer(shape)
    exact = EncoderLayer(shape).double()
    exact.load_state_dict(layer.state_dict())
    x = torch.randn(3, 5, 32)

    def gradients(layer, x, change):
        layer.self_attention_residual.register_forward_hook(lambda _m, _i, y: change(y))
        y, _weights = layer(x)
        return torch.autograd.grad(change(y).square().sum(), list(layer.parameters()))

    found = gradients(layer, x, lambda y: y.mul_(3))
    expected = gradients(exact, x.double(), lambda y: y * 3)
    largest = max(theirs.norm() for theirs in expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine - theirs).norm() <= 1e-5 * theirs.norm() + 1e-6 * largest
