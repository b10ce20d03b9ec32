"""Which products are oneDNN's, and that they are what torch's are."""

from types import SimpleNamespace

import pytest
import torch

from transformer_plugin import processor as module
from transformer_plugin.kernels.cpu import onednn
from transformer_plugin.kernels.cpu.onednn import multiplies, product
from transformer_plugin.kernels.cpu.products import SEARCH_ROWS, TRAINING_ROWS
from transformer_plugin.modules.products import row_multiple

BF16, FP32 = torch.bfloat16, torch.float32


@pytest.fixture
def processor(monkeypatch):
    """processor(...) makes this one of that kind."""

    def make(bf16_faster=False, bf16=True, float32=False):
        monkeypatch.setattr(module, "has_fast_bf16", lambda: bf16_faster)
        monkeypatch.setattr(onednn, "_is_available", lambda: True)
        monkeypatch.setattr(onednn, "_has_bf16", lambda: bf16)
        monkeypatch.setattr(module, "has_slow_mkl", lambda: float32)

    return make


@pytest.mark.parametrize(
    "dtype, kind, expected",
    [
        (BF16, {"bf16_faster": True}, True),
        (BF16, {"bf16_faster": True, "bf16": False}, False),
        (BF16, {}, False),  # converted, and MKL's
        (BF16, {"float32": True}, True),  # converted
        (FP32, {"bf16_faster": True}, False),
        (FP32, {"float32": True}, True),
        (torch.float64, {"bf16_faster": True, "float32": True}, False),
    ],
)
def test_what_is_multiplied(processor, dtype, kind, expected):
    processor(**kind)
    matrix = torch.empty(2, 3, dtype=dtype)
    assert multiplies(matrix) == expected
    assert row_multiple(matrix) == (TRAINING_ROWS if expected else 1)
    assert not multiplies(matrix.to("meta"))
    with torch.no_grad():  # a sentence alone is to stay one of few rows
        assert row_multiple(matrix) == (SEARCH_ROWS if expected and dtype == BF16 else 1)


@pytest.mark.parametrize("dtype", [BF16, FP32, torch.int8])
def test_torch_without_onednn(monkeypatch, dtype):
    """Its operators are not even there to be asked what they support."""
    for asked in (onednn._is_available, onednn._has_bf16, onednn._has_int8):
        monkeypatch.setattr(onednn, asked.__name__, asked.__wrapped__)  # not cached
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    monkeypatch.setattr(torch.ops, "onednn", SimpleNamespace())
    matrix = torch.zeros(2, 3, dtype=dtype)
    assert not onednn.packs(matrix)
    assert dtype == torch.int8 or not multiplies(matrix)


@pytest.mark.skipif(not onednn._is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("transposed", [False, True])
def test_float32_products(processor, transposed):
    processor(float32=True)
    torch.manual_seed(0)
    left, right = torch.randn(40, 24), torch.randn(24, 56)
    if transposed:
        right = right.t().contiguous().t()
    exact = left.double() @ right.double()
    assert (product(left, right).double() - exact).norm() <= 1e-6 * exact.norm()


@pytest.mark.parametrize("dtype", [BF16, FP32, torch.float64])
def test_others_are_written_where_they_are_told_to(processor, dtype):
    processor()
    left, right = torch.randn(4, 3).to(dtype), torch.randn(3, 5).to(dtype)
    place = torch.empty(4, 5, dtype=dtype)
    assert product(left, right, out=place) is place
    assert torch.equal(place, left @ right)
