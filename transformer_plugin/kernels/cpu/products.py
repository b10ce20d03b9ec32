"""The type and the number of rows in which a processor multiplies fastest."""

from __future__ import annotations

import torch
from torch import Tensor

from ...modules.products import product_type, row_multiple
from ..registry import kernel
from . import onednn
from .library import processor


def _is_slow_in_bf16(weight: Tensor) -> bool:
    return weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and not has_fast_bf16()


@kernel(product_type, _is_slow_in_bf16)
def float32_type(weight: Tensor) -> torch.dtype:
    """float32 for bf16, where the processor multiplies that more slowly."""
    return torch.float32


def has_fast_bf16() -> bool:
    """Whether this processor multiplies bf16 faster than float32: Intel's with AMX, AMD's with
    AVX-512 BF16.

    Known by what the processor is, not tried, so that each start and each process computes the same
    bits. Intel's AVX-512 BF16 without AMX takes 1.6 times the time of float32.
    """
    flags, is_amd = processor().split(), onednn.is_amd()
    return "amx_bf16" in flags or (is_amd and "avx512_bf16" in flags)


def _wants_few_shapes(weight: Tensor) -> bool:
    in_use = torch.is_grad_enabled() or weight.dtype == torch.bfloat16
    return in_use and onednn.multiplies(weight)


@kernel(row_multiple, _wants_few_shapes)
def multiple_for_onednn(weight: Tensor) -> int:
    """What oneDNN, which compiles a kernel for each new shape, is given."""
    return onednn.ROW_MULTIPLE
