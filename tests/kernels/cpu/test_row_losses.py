"""Losses and gradients of rows of logits, against the formula in float64."""

import pytest
import torch

from transformer_plugin.kernels.cpu import library, row_losses
from transformer_plugin.modules.label_smoothing import smoothed_cross_entropy, smoothed_loss

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
EPSILON = 0.1
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 4e-3}  # of a gradient


def found_and_expected(logits, target):
    exact = logits.double().requires_grad_()
    loss, nll = smoothed_cross_entropy(exact, target, EPSILON)
    (gradient,) = torch.autograd.grad(loss.sum(), exact)
    is_correct = logits.gather(1, target[:, None]).squeeze(1) >= logits.amax(1)
    share = EPSILON / (logits.size(1) - 1)
    assert row_losses.supports(logits, target)
    found = row_losses.replace_by_gradient(logits, target, share, 1 - EPSILON - share)
    return (logits, *found), (gradient, loss, nll, is_correct)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("rows, classes", [(1, 2), (3, 15), (9, 16), (17, 33), (100, 1000)])
def test_losses_and_gradient(dtype, rows, classes):
    torch.manual_seed(classes)
    logits = (4 * torch.randn(rows, classes)).to(dtype)
    target = torch.randint(classes, (rows,))
    target[0] = classes - 1  # in the last, incomplete vector
    logits[-1, target[-1]] = 100
    found, expected = found_and_expected(logits, target)
    torch.testing.assert_close(found[0].double(), expected[0], rtol=0, atol=TOLERANCE[dtype])
    for mine, theirs in zip(found[1:3], expected[1:3], strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)
    assert found[3].equal(expected[3]) and found[3][-1]


def test_a_logit_of_minus_infinity():
    """The probability is 0, and the smoothed loss is infinite, as with torch."""
    logits, target = torch.randn(2, 40), torch.tensor([3, 4])
    logits[0, 7] = -torch.inf
    found, expected = found_and_expected(logits, target)
    assert found[1].tolist()[0] == expected[1].tolist()[0] == torch.inf
    torch.testing.assert_close(found[2].double(), expected[2], rtol=1e-5, atol=0)
    share = EPSILON / 39
    assert found[0][0, 7].item() == pytest.approx(-share)


@pytest.mark.parametrize("place", [0, 15, 16, 18])
def test_nan_is_seen_in_the_loss_and_the_gradient(place):
    logits = torch.randn(1, 19)
    logits[0, place] = torch.nan
    target = logits[:, 1:15].argmax(1) + 1  # it would be the likeliest class
    loss, nll, correct = row_losses.replace_by_gradient(logits, target, 0.01, 0.8)
    assert loss.isnan().all() and nll.isnan().all() and logits.isnan().all() and not correct.any()


def test_the_number_of_threads_does_not_matter(monkeypatch):
    torch.manual_seed(0)
    logits, target = torch.randn(70, 100), torch.randint(100, (70,))
    results = []
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        gradient = logits.clone()
        results.append([*row_losses.replace_by_gradient(gradient, target, 0.01, 0.8), gradient])
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize("gold", [-1, 11])
def test_a_target_that_is_no_class_is_an_error(gold):
    """The kernel would write to memory that is not its own."""
    features, project = torch.randn(4, 7), torch.nn.Linear(7, 11, bias=False)
    with pytest.raises((RuntimeError, IndexError), match=r"out of (bounds|range)"):
        smoothed_loss(features, project, torch.tensor([0, gold, 1, 2]), EPSILON)


def test_other_logits_and_targets_are_left_to_torch():
    logits, target = torch.randn(4, 4), torch.tensor([0, 1, 2, 3])
    assert row_losses.supports(logits, target)
    assert not row_losses.supports(logits.t(), target)
    assert not row_losses.supports(logits.double(), target)
    for other in (target.int(), target[:3], target[:, None], target.to("meta")):
        assert not row_losses.supports(logits, other)
    assert not row_losses.supports(logits[:0], target[:0])


def test_a_target_may_have_strides():
    logits, target = torch.randn(4, 9), torch.tensor([[0, 5], [1, 6], [2, 7], [3, 8]])
    for strided in (target[:, 1], target[0, :1].expand(4)):
        found, expected = found_and_expected(logits.clone(), strided)
        torch.testing.assert_close(found[1].double(), expected[1], rtol=1e-5, atol=1e-5)


def test_the_loss_in_chunks_uses_them(monkeypatch):
    calls = []
    replace = row_losses.replace_by_gradient
    watched = lambda *given: calls.append(given) or replace(*given)  # noqa: E731
    monkeypatch.setattr(row_losses, "replace_by_gradient", watched)
    smoothed_loss(torch.randn(4, 7), torch.nn.Linear(7, 11, bias=False), torch.arange(4), EPSILON)
    assert len(calls) == 1
