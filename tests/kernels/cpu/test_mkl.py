"""Products with a packed matrix against the plain ones in float64."""

import pytest
import torch
from torch.testing import assert_close

from transformer_plugin.kernels.cpu import mkl
from transformer_plugin.kernels.cpu.mkl import PackedWeight, can_be_packed

needs_packing = pytest.mark.skipif(
    not can_be_packed(torch.ones(2, 2)), reason="torch was built without MKL"
)


@needs_packing
@pytest.mark.parametrize("out, width", [(256, 256), (768, 64), (64, 1024), (7791, 48), (1, 3)])
def test_a_packed_matrix_serves_any_number_of_rows(out, width):
    torch.manual_seed(0)
    weight = torch.randn(out, width)
    packed = PackedWeight(weight)
    for rows in (1, 2, 3, 7, 8, 16, 47, 64, 255, 256, 257, 300, 513, 1100):
        x, result = torch.randn(rows, width), torch.full((rows, out), torch.nan)
        assert packed.product(x, result) is result
        assert_close(result.double(), x.double() @ weight.double().t(), atol=2e-4, rtol=1e-5)


@needs_packing
def test_by_several_threads_at_once_as_by_one():
    weight, x = torch.randn(300, 64), torch.randn(130, 64)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        result = PackedWeight(weight).product(x, torch.empty(130, 300))
    finally:
        torch.set_num_threads(before)
    assert_close(result, x @ weight.t(), atol=2e-4, rtol=1e-5)


def test_what_is_not_packed(monkeypatch):
    weight = torch.ones(4, 4)
    for other in (weight.bfloat16(), weight.double(), weight[:, :2], weight.to("meta")):
        assert not can_be_packed(other)
    monkeypatch.setattr(mkl, "function", lambda name: None)
    assert not can_be_packed(weight)


def test_what_mkl_has_not_is_none():
    assert mkl.function("no_such_product_") is None
