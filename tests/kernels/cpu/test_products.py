"""In what type bf16 is multiplied: known by what the processor is."""

import pytest
import torch

from transformer_plugin.kernels.cpu import onednn, products
from transformer_plugin.modules.products import product_type

BF16, FP32 = torch.bfloat16, torch.float32


@pytest.mark.parametrize(
    "flags, is_amd, fast",
    [
        ("flags : avx2 avx512f", False, False),
        ("flags : avx512f avx512_bf16", False, False),  # slower than float32 on Intel's
        ("flags : avx512f avx512_bf16 amx_bf16", False, True),
        ("flags : avx512f avx512_bf16", True, True),
        ("flags : avx2", True, False),
    ],
)
def test_the_faster_type_is_taken_for_bf16(monkeypatch, flags, is_amd, fast):
    monkeypatch.setattr(products, "processor", lambda: flags)
    monkeypatch.setattr(onednn, "is_amd", lambda: is_amd)
    weight = torch.empty(2, 3, dtype=BF16)
    assert product_type(weight) == (BF16 if fast else FP32)
    assert product_type(weight.to("meta")) == BF16
    for dtype in (FP32, torch.float64, torch.float16):
        assert product_type(weight.to(dtype)) == dtype
