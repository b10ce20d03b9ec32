"""In what type bf16 is multiplied."""

import pytest
import torch

from transformer_plugin.modules import product_type as module
from transformer_plugin.modules.product_type import product_type

BF16, FP32 = torch.bfloat16, torch.float32


@pytest.fixture(autouse=True)
def tried_anew():
    module._is_bf16_faster.cache_clear()
    yield
    module._is_bf16_faster.cache_clear()


@pytest.mark.parametrize("faster", [BF16, FP32])
def test_the_faster_type_is_taken_for_bf16(monkeypatch, faster):
    seconds = {faster: 1.0, ({BF16, FP32} - {faster}).pop(): 1.1}
    monkeypatch.setattr(module, "_seconds", seconds.__getitem__)
    assert product_type(torch.empty(2, 3, dtype=BF16)) == faster


@pytest.mark.parametrize("dtype", [FP32, torch.float64, torch.float16])
def test_other_types_are_not_tried(monkeypatch, dtype):
    monkeypatch.delattr(module, "_seconds")
    assert product_type(torch.empty(2, 3, dtype=dtype)) == dtype
    assert product_type(torch.empty(2, 3, dtype=BF16, device="meta")) == BF16


@pytest.mark.parametrize(
    "took, fastest",
    [
        ([9, 2, 3, 4, 5], 2),  # a product that something else slowed does not count
        ([9, 99, 2], 9),  # so long that it is not worth while to go on
    ],
)
def test_seconds_are_those_of_a_product(monkeypatch, took, fastest):
    clock = iter([time for t in took for time in (0.0, t / 1000)])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))
    assert module._seconds(FP32) == fastest / 1000
