"""The choice of candidates in two rounds equals the choice in one."""

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.kernels.cuda.candidates import WIDTH, likeliest_in_two_rounds
from transformer_plugin.search.candidates import likeliest


@pytest.mark.parametrize("classes", [8 * WIDTH, 12 * WIDTH + 1, 20 * WIDTH - 1])
@pytest.mark.parametrize(
    "biases", [{0: -math.inf}, {0: -math.inf, 2: -math.inf, 3: -2.5}, {5: 3.0}]
)
def test_it_finds_the_same(classes, biases):
    logits = torch.randn(7, classes)
    logits[:, :6] += 3.0  # biased classes are among the likeliest
    logits[0, -1] = logits[1, classes // WIDTH * WIDTH - 1] = 9.0  # at the edge of the last block
    asked = torch.randint(classes, (7,))
    expected = likeliest.plain(logits.clone(), 8, biases, asked)
    for found, wanted in zip(
        likeliest_in_two_rounds(logits.clone(), 8, biases, asked), expected, strict=True
    ):
        assert torch.equal(found, wanted)


def test_the_likeliest_may_all_be_in_one_block_or_in_as_many_blocks():
    for first, step in ((3 * WIDTH, 1), (WIDTH - 1, WIDTH)):
        logits = torch.zeros(1, 10 * WIDTH)
        classes = torch.arange(first, first + 8 * step, step)
        logits[0, classes] = torch.arange(8.0) + 1
        found = likeliest_in_two_rounds(logits, 8, {}, torch.tensor([first]))
        assert found.classes[0].tolist() == classes.flip(0).tolist()


def test_half_precision_is_normalised_in_float32():
    logits = torch.randn(3, 9 * WIDTH).bfloat16()
    found = likeliest_in_two_rounds(logits, 4, {}, torch.zeros(3, dtype=torch.int64))
    assert found.log_probs.dtype == torch.float32
    assert_close(found.log_probs, logits.float().log_softmax(1).topk(4).values)
