"""Adam's update in one pass against the plain one."""

import copy

import pytest
import torch

from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cpu.adam import norm_in_one_pass, update_in_one_pass
from transformer_plugin.modules.adam import FusedAdam, gradient_norm, mixed_precision_update

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
SIZES = [(40, 30), (7,), (3 * 16_384 + 7,), (11, 13)]  # more than a thread takes at once
NUMBERS = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.01}


@pytest.fixture
def gradients():
    """gradients() makes new ones, in bf16, the last one missing."""
    torch.manual_seed(0)
    return lambda: [torch.randn(size).bfloat16() for size in SIZES[:-1]]


def test_the_norm(gradients):
    found = gradients()
    exact = torch.cat([g.flatten().double() for g in found]).norm()
    assert norm_in_one_pass(found).item() == pytest.approx(exact.item(), rel=1e-6)
    assert gradient_norm.plain(found).item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize("factor", [1.0, torch.tensor(0.25)], ids=repr)
def test_an_update(gradients, factor):
    weights = [torch.nn.Parameter(torch.randn(size)) for size in SIZES]

    def run(update):
        adam = FusedAdam(copy.deepcopy(weights), **NUMBERS)
        (group,) = adam.param_groups
        rounded = {w: torch.nn.Parameter(w.detach().bfloat16()) for w in group["params"]}
        torch.manual_seed(1)
        for _ in range(3):
            for copy_, gradient in zip(list(rounded.values())[:-1], gradients(), strict=True):
                copy_.grad = gradient
            with torch.no_grad():
                update(adam, group, rounded, factor)
        states = [tensor for w in group["params"] for tensor in adam.state[w].values()]
        return [*group["params"], *states], list(rounded.values())

    found, copies = run(update_in_one_pass)
    expected, _copies = run(mixed_precision_update.plain)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-7, rtol=1e-6)
    for rounded, exact in zip(copies, found, strict=False):
        assert rounded.equal(exact.bfloat16())
