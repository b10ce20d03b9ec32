"""Residual connection, normalisation and where dropout acts, sections 3.1 and 5.4."""

import torch

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
