"""In what type bf16 is multiplied."""

import pytest
import torch

from transformer_plugin import processor
from transformer_plugin.modules.products import product_type

BF16, FP32 = torch.bfloat16, torch.float32


@pytest.mark.parametrize("faster", [BF16, FP32])
def test_the_faster_type_is_taken_for_bf16(monkeypatch, faster):
    monkeypatch.setattr(processor, "has_fast_bf16", lambda: faster == BF16)
    weight = torch.empty(2, 3, dtype=BF16)
    assert product_type(weight) == faster
    assert product_type(weight.to("meta")) == BF16
    for dtype in (FP32, torch.float64, torch.float16):
        assert product_type(weight.to(dtype)) == dtype
