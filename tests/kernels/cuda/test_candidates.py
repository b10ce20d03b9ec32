"""The choice of candidates in two rounds equals the choice in one."""

import math

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.kernels.cuda.candidates import WIDTH, likeliest_in_two_rounds
from transformer_plugin.kernels.registry import REGISTRY
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


class OnGPU(torch.Tensor):
    """A tensor that says that it lies on a GPU."""

    is_cuda = True


def test_it_is_chosen_on_a_gpu_for_many_classes():
    (registered,) = (each for each in REGISTRY if each.kernel.run is likeliest_in_two_rounds)

    def is_chosen(classes, k=8, kind=OnGPU):
        logits = torch.zeros(2, classes).as_subclass(kind)
        return registered.kernel.supports(logits, k, {}, torch.zeros(2, dtype=torch.int64))

    assert registered.operation is likeliest and registered.kernel in likeliest.implementations
    assert is_chosen(8192) and is_chosen(37_000)
    assert not is_chosen(8191) and not is_chosen(37_000, kind=torch.Tensor)
    assert is_chosen(200 * WIDTH, k=200) and not is_chosen(200 * WIDTH, k=201)  # too few blocks


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_gpu_chooses_it_and_it_finds_the_same(dtype):
    ranks = torch.stack([torch.randperm(8193) for _ in range(7)])
    logits = (ranks / 8193).to("cuda", dtype)
    best = [13, 5, 12, 700, 701, 4000, 8191, 8192]  # no ties; the last is in no block
    logits[:, best] = torch.arange(2, 10, device="cuda").to(dtype)
    asked = torch.arange(7, device="cuda")
    biases = {0: -math.inf, 12: -2.5}
    run = (i.run for i in likeliest.implementations if i.supports(logits, 6, biases, asked))
    assert next(run) is likeliest_in_two_rounds
    expected = likeliest.plain(logits.clone(), 6, biases, asked)
    found = likeliest(logits.clone(), 6, biases, asked)
    assert found.classes.equal(expected.classes)
    assert_close(found.log_probs, expected.log_probs)
    assert_close(found.asked_log_probs, expected.asked_log_probs)


def test_half_precision_is_normalised_in_float32():
    logits = torch.randn(3, 9 * WIDTH).bfloat16()
    found = likeliest_in_two_rounds(logits, 4, {}, torch.zeros(3, dtype=torch.int64))
    assert found.log_probs.dtype == torch.float32
    assert_close(found.log_probs, logits.float().log_softmax(1).topk(4).values)
