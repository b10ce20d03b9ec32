"""Second derivatives and torch.func, which kernels do not know, are those of the equations."""

from __future__ import annotations

import pytest
import torch

from transformer_plugin.modules.dropout import dropout
from transformer_plugin.modules.label_smoothing import smoothed_loss
from transformer_plugin.modules.layers import LayerShape
from transformer_plugin.modules.transformer import Transformer

DTYPES = (torch.float32, torch.bfloat16)


def model_and_loss(dtype, **options):
    """A small Transformer, and the loss of a batch with padding as a function of its weights."""
    torch.manual_seed(1)
    shape = LayerShape(d_model=64, d_ff=96, dropout=0.0, **{"num_heads": 4} | options)
    model = Transformer(50, 1, shape, num_layers=1).to(dtype)
    source = torch.randint(2, 50, (3, 7))
    source[1, 4:] = 1

    def loss():
        memory, packing, _ = model.encoder.encode(source)
        features, _, _ = model.decoder.decode(source, memory, packing)
        gold = source[source != 1]  # without the idle rows that a kernel for products adds
        return smoothed_loss(features, model.decoder.output_layer, gold, 0.1).loss

    return model, loss


def hessian_times_gradient(dtype, **options):
    """For each weight, half the derivative of the squared norm of the gradient."""
    model, loss = model_and_loss(dtype, **options)
    weights = list(model.parameters())
    gradient = torch.autograd.grad(loss(), weights, create_graph=True)
    return torch.autograd.grad(sum(g.double().square().sum() / 2 for g in gradient), weights)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_second_derivatives(dtype, plain_functions):
    found = hessian_times_gradient(dtype)
    with plain_functions():
        expected = hessian_times_gradient(dtype)
    largest = max(float(each.abs().max()) for each in expected)
    for one, other in zip(found, expected, strict=True):
        atol = (1e-5 if dtype == torch.float32 else 0.1) * largest
        torch.testing.assert_close(one, other, rtol=0, atol=atol)


@pytest.mark.parametrize(
    "options",
    [{}, {"attention_window": 2}, {"num_heads": 8}, {"attention_score": "general"}],
    ids=str,
)
def test_second_derivatives_in_float64(options, plain_functions):
    """Also of attention that only torch's fused kernel supports."""
    found = hessian_times_gradient(torch.float64, **options)
    with plain_functions():
        expected = hessian_times_gradient(torch.float64, **options)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_second_derivative_of_dropout(dtype):
    x = torch.rand(1000, dtype=dtype).add(0.5).requires_grad_()
    y = dropout(x.pow(3), 0.3)
    factor = (y / x.pow(3)).detach()  # 0 or 1 / 0.7
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert 0.6 < factor.ne(0).float().mean() < 0.8
    torch.testing.assert_close(second, factor * 6 * x, rtol=0.03, atol=0)


class Loss(torch.nn.Module):
    """``model_and_loss`` as a module, for ``functional_call``."""

    def __init__(self):
        super().__init__()
        self.model, self.forward = model_and_loss(torch.float32)


def test_torch_func():
    model = Loss()
    # torch's functional_call restores a tied weight wrongly if its module, too, has two owners.
    weights = {n: w for n, w in model.named_parameters() if "embed_tokens" not in n}

    def loss(weights):
        return torch.func.functional_call(model, weights, ())

    gradient = torch.func.grad(loss)(weights)
    model().backward()
    for name, weight in weights.items():
        torch.testing.assert_close(gradient[name], weight.grad)
    _loss, slope = torch.func.jvp(loss, (weights,), (gradient,))
    squares = sum(each.square().sum() for each in gradient.values())
    torch.testing.assert_close(slope, squares, rtol=1e-4, atol=0)
