"""The chunked loss against the closed form, and its gradients against finite differences."""

import math

import pytest
import torch

from transformer_plugin.modules.label_smoothing import (
    chunked_smoothed_cross_entropy,
    smoothed_cross_entropy,
)

N, D, V, EPSILON = 23, 7, 11, 0.1


def tensors(dtype):
    torch.manual_seed(0)
    features = torch.randn(N, D, dtype=dtype, requires_grad=True)
    weight = torch.randn(V, D, dtype=dtype, requires_grad=True)
    return features, weight, torch.randint(V, (N,))


def closed_form(features, weight, target, epsilon):
    """Sum over rows and classes of -q log p, one number at a time."""
    loss = nll = 0.0
    for row, gold in zip((features @ weight.t()).tolist(), target.tolist(), strict=True):
        log_z = math.log(sum(math.exp(x) for x in row))
        for j, x in enumerate(row):
            q = 1 - epsilon if j == gold else epsilon / (V - 1)
            loss -= q * (x - log_z)
        nll -= row[gold] - log_z
    return loss, nll


@pytest.mark.parametrize("epsilon", [0.0, EPSILON, 0.4])
@pytest.mark.parametrize("chunk_size", [1, 5, N, 1000, None])
def test_loss_equals_the_closed_form(epsilon, chunk_size):
    features, weight, target = tensors(torch.float64)
    result = chunked_smoothed_cross_entropy(features, weight, target, epsilon, chunk_size)
    loss, nll = closed_form(features, weight, target, epsilon)
    assert result.loss.item() == pytest.approx(loss, rel=1e-12)
    assert result.nll_loss.item() == pytest.approx(nll, rel=1e-12)
    guesses = (features @ weight.t()).argmax(dim=1)
    assert result.num_correct.item() == guesses.eq(target).sum().item()


def test_rows_of_the_plain_formula_sum_to_the_closed_form():
    features, weight, target = tensors(torch.float64)
    loss, nll = smoothed_cross_entropy(features @ weight.t(), target, EPSILON)
    expected = closed_form(features, weight, target, EPSILON)
    assert loss.shape == nll.shape == (N,)
    assert (loss.sum().item(), nll.sum().item()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-6)])
def test_gradients_equal_those_of_the_plain_formula(dtype, tolerance):
    features, weight, target = tensors(dtype)
    (3 * chunked_smoothed_cross_entropy(features, weight, target, EPSILON, 5).loss).backward()
    wide = [t.detach().double().requires_grad_() for t in (features, weight)]
    (3 * smoothed_cross_entropy(wide[0] @ wide[1].t(), target, EPSILON)[0].sum()).backward()
    for ours, plain in zip((features, weight), wide, strict=True):
        scale = plain.grad.abs().max()
        assert ((ours.grad - plain.grad).abs().max() / scale).item() < tolerance


def test_gradients_equal_finite_differences():
    features, weight, target = tensors(torch.float64)
    assert torch.autograd.gradcheck(
        lambda f, w: chunked_smoothed_cross_entropy(f, w, target, EPSILON, 4).loss,
        (features, weight),
        atol=1e-7,
    )


def test_without_gradient_the_loss_is_the_same():
    features, weight, target = tensors(torch.float64)
    expected = chunked_smoothed_cross_entropy(features, weight, target, EPSILON).loss
    with torch.no_grad():
        loss = chunked_smoothed_cross_entropy(features, weight, target, EPSILON).loss
    assert loss.item() == expected.item() and not loss.requires_grad


def test_bf16_is_near():
    features, weight, target = tensors(torch.float64)
    chunked_smoothed_cross_entropy(features, weight, target, EPSILON, 5).loss.backward()
    halves = [t.detach().bfloat16().requires_grad_() for t in (features, weight)]
    chunked_smoothed_cross_entropy(*halves, target, EPSILON, 5).loss.backward()
    for ours, exact in zip(halves, (features, weight), strict=True):
        error = (ours.grad.double() - exact.grad).norm() / exact.grad.norm()
        assert error < 2e-2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gold_class_of_vanishing_probability_has_a_finite_loss(dtype):
    features = torch.tensor([[200.0], [1.0]], dtype=dtype)
    weight = torch.tensor([[1.0], [-1.0], [0.5]], dtype=dtype)
    result = chunked_smoothed_cross_entropy(features, weight, torch.tensor([1, 0]), 0.0)
    logits = torch.tensor([[200.0, -200.0, 100.0], [1.0, -1.0, 0.5]], dtype=torch.float64)
    expected = -logits.log_softmax(1)[[0, 1], [1, 0]].sum().item()
    assert result.nll_loss.item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("chunk_size", [4, 24, 100])
def test_idle_rows_count_for_nothing(chunk_size):
    features, weight, target = tensors(torch.float64)
    expected = chunked_smoothed_cross_entropy(features, weight, target[:19], EPSILON)
    short = chunked_smoothed_cross_entropy(features[:19], weight, target[:19], EPSILON)
    assert expected.loss.item() == pytest.approx(short.loss.item(), rel=1e-12)
    result = chunked_smoothed_cross_entropy(features, weight, target[:19], EPSILON, chunk_size)
    grads = torch.autograd.grad(result.loss, (features, weight))
    plain = torch.autograd.grad(short.loss, (features, weight))
    assert grads[0][19:].eq(0).all()
    for one, other in zip(grads, plain, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-12)
