"""Products with float32 weights in panels: those of float64, whatever the shapes."""

import pytest
import torch
from decoding_steps import packed_for_search
from torch import nn
from torch.nn import functional as F

from transformer_plugin import processor
from transformer_plugin.kernels.cpu import packed_linear, panels
from transformer_plugin.kernels.cpu.library import operators
from transformer_plugin.modules.linear import linear

pytestmark = pytest.mark.skipif(operators() is None, reason="no C++ compiler")
ROWS = 200


@pytest.fixture
def layer(monkeypatch):
    """layer(inputs, outputs, bias) is a linear map, packed as on a processor with AVX2."""
    monkeypatch.setattr(processor, "has_avx2", lambda: True)

    def make(inputs, outputs, bias=True):
        torch.manual_seed(0)
        (made,) = packed_for_search(nn.Linear(inputs, outputs, bias).requires_grad_(False))
        return made

    return make


def exact(made, x, relu):
    y = F.linear(
        x.double(), *(each if each is None else each.double() for each in (made.weight, made.bias))
    )
    return y.relu() if relu else y


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("inputs", "outputs"), [(64, 96), (32, 64), (50, 65), (1, 95), (3000, 127), (64, 1000)]
)
@torch.no_grad()
def test_they_are_exact(layer, inputs, outputs, bias):
    made, x = layer(inputs, outputs, bias), torch.randn(ROWS, inputs)
    assert not packed_linear.operands(made).matrix.is_mkldnn
    for rows in (1, 2, 5, 6, 7, 13, ROWS):  # of 3,000 numbers: more than a block of rows
        for relu in (False, True):
            found, expected = linear(made, x[:rows], relu=relu), exact(made, x[:rows], relu)
            assert found.shape == expected.shape and found.dtype == x.dtype
            assert (found - expected).abs().max() < 5e-6 * expected.abs().max()


@torch.no_grad()
def test_rows_of_several_dimensions_and_strides(layer):
    made, x = layer(64, 72), torch.randn(3, 64, 5).transpose(1, 2)
    found = linear(made, x)
    assert found.shape == (3, 5, 72)
    assert (found - exact(made, x, False)).abs().max() < 1e-5


@torch.no_grad()
def test_a_row_has_the_same_bits_in_any_batch_and_with_any_number_of_threads(layer, threads):
    made, x = layer(512, 1000), torch.randn(ROWS, 512)
    torch.set_num_threads(1)
    whole = linear(made, x)
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        for rows in (1, 4, 9, 100, ROWS):
            assert linear(made, x[:rows]).equal(whole[:rows])


@torch.no_grad()
@pytest.mark.parametrize("more", [0, 1, 63, 65, 40_000])
def test_threads_write_only_their_own_columns(layer, threads, more):
    """Repeated, because threads meet by chance."""
    made, x = layer(64, panels.columns() + more), torch.randn(40, 64)
    torch.set_num_threads(1)
    expected = linear(made, x, relu=True)
    torch.set_num_threads(4)
    for _ in range(20 if more > 1000 else 200):
        assert linear(made, x, relu=True).equal(expected)


@torch.no_grad()
@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_not_finite_stay_in_their_row(layer, number):
    made, x = layer(64, 72), torch.randn(3, 64)
    x[1, 5] = number
    for relu in (False, True):
        found = linear(made, x, relu=relu)
        torch.testing.assert_close(found, linear.plain(made, x, relu=relu), equal_nan=True)
        assert not found[1].isfinite().all() and found[[0, 2]].isfinite().all()


@torch.no_grad()
def test_fewer_columns_than_a_panel_has_are_left_to_onednn(layer):
    made, x = layer(64, panels.columns() - 1), torch.randn(3, 64)
    assert packed_linear.operands(made).matrix.is_mkldnn
    torch.testing.assert_close(linear(made, x), linear.plain(made, x))
