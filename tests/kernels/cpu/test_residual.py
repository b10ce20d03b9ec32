"""LayerNorm(x + Dropout(y)) by the kernels equals the formula in float64."""

from ctypes import c_void_p

import numpy as np
import pytest
import torch
from torch import nn

from transformer_plugin.kernels.cpu import library
from transformer_plugin.kernels.cpu import residual as kernel
from transformer_plugin.kernels.cpu.dropout import LANE_VALUES, cheap_dropout
from transformer_plugin.kernels.cpu.residual import fused_residual_norm
from transformer_plugin.modules.residual import Residual, residual_norm

pytestmark = pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
ROWS = 150  # more than a task has, and not a multiple


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def norm_of(width, dtype):
    norm = nn.LayerNorm(width, eps=1e-6)
    nn.init.normal_(norm.weight, 1, 0.3)
    nn.init.normal_(norm.bias)
    return norm.to(dtype)


def inputs(width, dtype, number=2):
    return [torch.randn(ROWS, width).to(dtype).requires_grad_() for _ in range(number)]


def with_gradients(function, tensors, importance):
    out = function(*tensors[:2])
    return [out, *torch.autograd.grad(out, tensors, importance.to(out.dtype))]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-6), (torch.bfloat16, 5e-3)])
@pytest.mark.parametrize("width", [16, 144, 512])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.6])
def test_output_and_gradients(rate, width, dtype, tolerance):
    norm, (x, y) = norm_of(width, dtype), inputs(width, dtype)
    exact = nn.LayerNorm(width, eps=1e-6).double()
    exact.load_state_dict(norm.state_dict())
    importance = torch.randn(ROWS, width).to(dtype)
    tensors = [x, y, norm.weight, norm.bias]
    found = with_gradients(
        lambda x, y: fused_residual_norm(x, y, rate, norm), tensors, importance
    )
    kept = found[2].ne(0).double() / (1 - rate)  # where y has a gradient
    wide = [t.detach().double().requires_grad_() for t in (x, y)]
    expected = with_gradients(
        lambda x, y: exact(x + y * kept), [*wide, exact.weight, exact.bias], importance
    )
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == dtype
        assert (mine.double() - theirs).norm() <= tolerance * theirs.norm()


def test_each_element_is_dropped_with_the_rate():
    rate, (x, y) = 0.1, inputs(400, torch.float32)
    (gradient,) = torch.autograd.grad(
        fused_residual_norm(x, y, rate, norm_of(400, torch.float32)).square().sum(), [y]
    )
    dropped = gradient.eq(0).double()
    deviation = (rate * (1 - rate) / dropped.numel()) ** 0.5
    assert abs(dropped.mean() - rate) < 5 * deviation
    pairs = [dropped[1:] * dropped[:-1]]  # of neighbours, and of numbers drawn together
    pairs += [dropped[:, apart:] * dropped[:, :-apart] for apart in (1, 16, 32, 128)]
    for both in pairs:
        assert abs(both.mean() - rate**2) < 5 * (rate**2 / both.numel()) ** 0.5


def philox(key, counters):
    """Philox4x32-10 of counters ``[N]``, by its definition: four words of each, ``[N, 4]``."""
    low = np.uint64(0xFFFFFFFF)
    c = [counters & low, counters >> np.uint64(32), np.zeros_like(counters), counters * 0]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            second >> np.uint64(32) ^ c[1] ^ np.uint64(keys[0]),
            second & low,
            first >> np.uint64(32) ^ c[3] ^ np.uint64(keys[1]),
            first & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return np.stack(c, axis=1)


def test_random_numbers_are_those_of_philox():
    assert [f"{word:08x}" for word in philox(0, np.zeros(1, np.uint64))[0]] == [
        "6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8",  # the authors' known answer
    ]  # fmt: skip
    rate, width = 0.25, 144  # two blocks of sixteen counters a row, the second for one vector
    norm, (x, y) = norm_of(width, torch.float32), inputs(width, torch.float32)
    torch.manual_seed(3)
    out = fused_residual_norm(x, y, rate, norm)
    (gradient,) = torch.autograd.grad(out.square().sum(), [y])
    torch.manual_seed(3)
    seed = int(torch.empty((), dtype=torch.int64).random_())
    words = philox(seed, np.arange(ROWS * 2 * 16, dtype=np.uint64)).reshape(ROWS, 2, 16, 4)
    halves = np.stack([words & np.uint64(0xFFFF), words >> np.uint64(16)], axis=-1)
    # A vector holds the same half of the same word of all sixteen counters.
    numbers = halves.transpose(0, 1, 3, 4, 2).reshape(ROWS, 256)[:, :width]
    assert np.array_equal(gradient.eq(0).numpy(), numbers < rate * 65536)


def test_the_seed_decides_and_not_the_threads(monkeypatch):
    norm, (x, y) = norm_of(32, torch.float32), inputs(32, torch.float32)

    def draw(seed):
        torch.manual_seed(seed)
        return fused_residual_norm(x, y, 0.5, norm)

    threads = torch.get_num_threads()
    found = []
    for number in (1, 3):
        torch.set_num_threads(number)
        found.append(draw(1))
    monkeypatch.setattr(library, "_openmp_entry_point", c_void_p)  # another OpenMP
    found.append(draw(1))
    torch.set_num_threads(threads)
    assert found[0].equal(found[1]) and found[0].equal(found[2])
    assert not found[0].equal(draw(2))
    torch.manual_seed(1)
    first, second = (fused_residual_norm(x, y, 0.5, norm) for _ in range(2))
    assert not first.equal(second)


def test_the_module_takes_the_kernels(monkeypatch):
    """And gives with them what it gives without."""
    x, y = inputs(48, torch.float32)
    residual = Residual(48, 0.1, False, 1e-6)
    calls = []
    run = kernel.run
    monkeypatch.setattr(kernel, "run", lambda name, *rest: calls.append(name) or run(name, *rest))
    residual.eval()
    found = with_gradients(lambda x, y: residual(x, lambda _: y), [x, y], torch.ones(ROWS, 48))
    assert calls == ["residual_norm", "residual_norm_back"]
    monkeypatch.setattr(residual_norm, "kernels", [])
    expected = with_gradients(lambda x, y: residual(x, lambda _: y), [x, y], torch.ones(ROWS, 48))
    assert len(calls) == 2
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


def test_what_the_kernels_cannot_do():
    def supported(x, y, dtype=torch.float32):
        return kernel._supports(x, y, 0.1, norm_of(x.size(-1), dtype))

    x = torch.zeros(2, 16)
    assert supported(x, x)
    assert not supported(x, x.bfloat16())
    assert not supported(x, x, torch.bfloat16)
    assert not supported(x.double(), x.double(), torch.float64)
    assert not supported(torch.zeros(2, 24), torch.zeros(2, 24))


@pytest.mark.parametrize("rate, drops", [(0.4 / LANE_VALUES, False), (50.6 / LANE_VALUES, True)])
def test_it_drops_with_the_rate_of_dropout(rate, drops):
    """Rounded as there: the numbers of sixteen bits that both draw are below the same one."""
    x, y = torch.zeros(4000, 400), torch.ones(4000, 400, requires_grad=True)
    norm = nn.LayerNorm(400)
    nn.init.normal_(norm.weight)
    out = fused_residual_norm(x, y, rate, norm)
    (gradient,) = torch.autograd.grad((out * torch.randn_like(out)).sum(), y)
    expected = round(rate * LANE_VALUES) / LANE_VALUES
    for values in (gradient, cheap_dropout(torch.ones_like(y), rate)):
        dropped = values.eq(0).double()
        assert bool(dropped.any()) == drops
        assert abs(dropped.mean() - expected) <= 5 * (expected / dropped.numel()) ** 0.5
