"""The plain loss against the closed form."""

import math

import pytest
import torch
from torch import nn

from transformer_plugin.modules.label_smoothing import smoothed_cross_entropy, smoothed_loss

N, D, V, EPSILON = 23, 7, 11, 0.1


@pytest.fixture
def batch_of_rows():
    """Features ``[N, D]``, the projection to ``[N, V]`` and gold classes."""
    torch.manual_seed(0)
    features = torch.randn(N, D, dtype=torch.float64)
    return features, nn.Linear(D, V, bias=False).double(), torch.randint(V, (N,))


def closed_form(logits, target, epsilon):
    """Sum over rows and classes of -q log p, one number at a time."""
    loss = nll = 0.0
    for row, gold in zip(logits.tolist(), target.tolist(), strict=True):
        log_z = math.log(sum(math.exp(x) for x in row))
        for j, x in enumerate(row):
            q = 1 - epsilon if j == gold else epsilon / (V - 1)
            loss -= q * (x - log_z)
        nll -= row[gold] - log_z
    return loss, nll


@pytest.mark.parametrize("epsilon", [0.0, EPSILON, 0.4])
def test_rows_sum_to_the_closed_form(batch_of_rows, epsilon):
    features, project, target = batch_of_rows
    logits = project(features)
    loss, nll = smoothed_cross_entropy(logits, target, epsilon)
    expected = closed_form(logits, target, epsilon)
    assert loss.shape == nll.shape == (N,)
    assert (loss.sum().item(), nll.sum().item()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "function", [smoothed_loss.plain, smoothed_loss], ids=["plain", "operation"]
)
@pytest.mark.parametrize("epsilon", [0.0, EPSILON, 0.4])
def test_the_sums_of_a_batch(batch_of_rows, epsilon, function):
    features, project, target = batch_of_rows
    logits = project(features[:19])
    found = function(features, project, target[:19], epsilon)  # the last four rows are idle
    loss, nll = closed_form(logits, target[:19], epsilon)
    assert found.loss.item() == pytest.approx(loss, rel=1e-12)
    assert found.nll_loss.item() == pytest.approx(nll, rel=1e-12)
    assert found.num_correct.item() == logits.argmax(dim=1).eq(target[:19]).sum().item()
