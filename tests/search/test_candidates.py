"""The likeliest classes against a full sort in float64, by torch and by what stands for it."""

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.search.candidates import likeliest


def expected_choice(logits, biases):
    """By log softmax in float64 and a full sort."""
    log_p = logits.double().log_softmax(1)
    biased = log_p.clone()
    for number, bias in biases.items():
        biased[:, number] += bias
    return biased.sort(dim=1, descending=True, stable=True), log_p


BOTH = pytest.mark.parametrize("function", [likeliest.plain, likeliest], ids=["plain", "operation"])


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("classes", [11, 64, 1000, 1003])
def test_likeliest_classes_are_those_of_a_full_sort(classes, dtype, function):
    torch.manual_seed(0)
    # Each value once in a row, so that there is one answer, in bf16 too.
    values = torch.linspace(-100, 30, 30_000).to(dtype).unique()
    picks = torch.stack([torch.randperm(values.numel())[:classes] for _ in range(50)])
    logits = values[picks % values.numel()]
    biases = {1: -math.inf, 3: -2.03, 0: -math.inf}
    asked = torch.randint(classes, (50,))
    (log_p, order), plain = expected_choice(logits, biases)
    found = function(logits.clone(), 8, biases, asked)
    assert found.classes.equal(order[:, :8])
    assert_close(found.log_probs, log_p[:, :8].float(), atol=2e-5, rtol=2e-6)
    asked_log_p = plain.gather(1, asked.unsqueeze(1)).squeeze(1)
    assert_close(found.asked_log_probs, asked_log_p.float(), atol=2e-5, rtol=2e-6)


@BOTH
def test_large_logits_lose_no_digits(function):
    logits = 1e4 + torch.randperm(1000).view(1, -1) / 128
    biases, asked = {3: -0.01}, torch.tensor([5])
    (log_p, order), plain = expected_choice(logits, biases)
    found = function(logits.clone(), 8, biases, asked)
    assert found.classes.equal(order[:, :8])
    assert_close(found.log_probs, log_p[:, :8].float(), atol=1e-6, rtol=1e-6)
    assert_close(found.asked_log_probs, plain[:, 5].float(), atol=1e-6, rtol=1e-6)
