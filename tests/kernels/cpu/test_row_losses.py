"""Losses of rows and their gradient against the plain formulas in float64."""

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cpu.row_losses import by_torch, is_in_place, row_losses

needs_compiler = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
SHARE = 0.875
BOTH_WAYS = pytest.mark.parametrize(
    "find", [pytest.param(row_losses, marks=needs_compiler), by_torch]
)


def rows(classes, dtype, number=203):
    torch.manual_seed(0)
    logits = (8 * torch.randn(number, classes)).to(dtype)
    gold = torch.randint(classes, (number,))
    logits[0, gold[0]] = -2000.0  # whose p is 0 in any type
    return logits, gold


@BOTH_WAYS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("classes", [11, 16, 1003])
def test_losses_and_gradient(find, dtype, classes):
    logits, gold = rows(classes, dtype)
    gradient = torch.full_like(logits, torch.nan)
    nll, log_z, is_likeliest = find(logits, gold, SHARE, gradient)
    log_p = logits.double().log_softmax(dim=1)
    index = gold.unsqueeze(1)
    rounding = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    bounds = {"atol": 16 * rounding, "rtol": max(rounding, 1e-7)}  # of numbers of about 10
    if dtype == torch.bfloat16 and find is by_torch:  # whose p is rounded
        bounds = {"atol": 0.03, "rtol": 1e-6}
    assert_close(nll.double(), -log_p.gather(1, index)[:, 0], **bounds)
    assert_close(log_z.double(), logits.double().logsumexp(1), **bounds)
    expected = log_p.exp().scatter_add(1, index, torch.full((len(gold), 1), -SHARE).double())
    error = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 0.004}[dtype]
    assert_close(gradient.double(), expected, atol=error, rtol=error)
    sure = logits.double().topk(2, dim=1).values.diff().squeeze(1).abs() > 0.1
    assert is_likeliest[sure].equal((logits.argmax(dim=1) == gold)[sure]) and sure.sum() > 100


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_may_take_the_place_of_the_logits(dtype):
    logits, gold = rows(100, dtype)
    assert is_in_place(logits)
    apart = torch.empty_like(logits)
    expected = row_losses(logits, gold, SHARE, apart)
    found = row_losses(logits, gold, SHARE, logits)
    assert logits.equal(apart)
    assert all(map(torch.equal, found, expected))


@BOTH_WAYS
def test_what_is_no_number_stays_so(find):
    logits, gold = rows(40, torch.float32, 3)
    logits[1, 7] = torch.nan
    gradient = torch.empty_like(logits)
    found = find(logits, gold, SHARE, gradient)
    assert found.nll.isnan().tolist() == gradient.isnan().all(dim=1).tolist() == [0, 1, 0]


@BOTH_WAYS
def test_a_class_that_cannot_be_is_no_harm(find):
    logits = torch.tensor([[-torch.inf, 1.0, 1.0]])
    gradient = torch.empty_like(logits)
    found = find(logits, torch.tensor([2]), SHARE, gradient)
    assert_close(found.nll, torch.tensor([2.0]).log())
    assert_close(gradient, torch.tensor([[0.0, 0.5, 0.5 - SHARE]]))


@BOTH_WAYS
def test_no_rows(find):
    nothing = torch.empty(0, 5)
    found = find(nothing, torch.empty(0, dtype=torch.int64), SHARE, nothing.clone())
    assert [each.shape for each in found] == [(0,)] * 3
