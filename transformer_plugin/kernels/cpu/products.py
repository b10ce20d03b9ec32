"""The data type and the number of rows with which a processor multiplies fastest. Without this
kernel ``fairseq-train`` of ``vaswani_small`` in bf16 takes 1.14 times as long, and 2.3 GiB
instead of 0.8; in fp32 as long, and 1.6 instead of 0.9 (docs/experiments.md). A benchmark that
repeats its batches does not show it."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import processor
from ...modules.products import product_type, row_multiple
from ..registry import kernel
from . import onednn

# oneDNN compiles a kernel for each new shape, so the number of rows should take few values. A
# search also multiplies sentences one at a time: there it should not be much above their length.
TRAINING_ROWS = 128
SEARCH_ROWS = 32


def _is_slow_in_bf16(weight: Tensor) -> bool:
    is_bf16 = weight.dtype == torch.bfloat16 and weight.device.type == "cpu"
    return is_bf16 and not processor.has_fast_bf16()


@kernel(product_type, _is_slow_in_bf16)
def float32_type(weight: Tensor) -> torch.dtype:
    """float32 instead of bf16, if the processor is slower in bf16."""
    return torch.float32


def _wants_few_shapes(weight: Tensor) -> bool:
    in_use = torch.is_grad_enabled() or weight.dtype == torch.bfloat16
    return in_use and onednn.multiplies(weight)


@kernel(row_multiple, _wants_few_shapes)
def multiple_for_onednn(weight: Tensor) -> int:
    """A multiple that limits the shapes for which oneDNN compiles kernels."""
    return TRAINING_ROWS if torch.is_grad_enabled() else SEARCH_ROWS
