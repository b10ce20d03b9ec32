"""The choice of candidates in one pass, where torch's own choice is another or none."""

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cpu.candidates import likeliest_in_one_pass
from transformer_plugin.search.candidates import likeliest

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")


def test_of_equal_logits_the_first_are_taken():
    asked = torch.zeros(2, dtype=torch.int64)
    found = likeliest_in_one_pass(torch.zeros(2, 500), 3, {0: -math.inf}, asked)
    assert found.classes.tolist() == [[1, 2, 3]] * 2
    assert_close(found.log_probs, torch.full((2, 3), -math.log(500)))


def test_classes_that_no_one_may_choose_are_minus_infinity():
    logits = torch.full((1, 70), -math.inf)
    logits[0, 5] = 2.0
    found = likeliest_in_one_pass(logits, 4, {}, torch.tensor([5]))
    assert found.log_probs.tolist() == [[0.0, -math.inf, -math.inf, -math.inf]]
    assert found.classes[0, 0] == 5


def test_no_rows_have_no_candidates():
    found = likeliest(torch.zeros(0, 70), 4, {}, torch.zeros(0, dtype=torch.int64))
    assert found.classes.shape == (0, 4)


def test_requested_classes_in_32_bits():
    """The kernel read two of them as one, and other memory."""
    logits, asked = torch.randn(4, 9), torch.tensor([1, 0, 2, 0], dtype=torch.int32)
    found, expected = (f(logits.clone(), 2, {}, asked) for f in (likeliest, likeliest.plain))
    assert_close(found, expected)


def test_the_result_is_on_the_device_of_the_logits():
    logits, asked = torch.arange(9.0).view(1, 9), torch.tensor([4])
    with torch.device("meta"):
        found = likeliest(logits, 2, {}, asked)
    assert found.classes.tolist() == [[8, 7]]


@pytest.mark.parametrize("number", [8, 10**9, -9])
def test_a_class_that_does_not_exist_is_an_error(number):
    """The kernel read other memory."""
    logits, asked = torch.randn(2, 8), torch.tensor([1, number])
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        likeliest(logits, 2, {}, asked)
    with pytest.raises(IndexError, match="out of bounds"):
        likeliest(logits, 2, {number: -1.0}, torch.tensor([1, 1]))
