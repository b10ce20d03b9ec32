"""The arithmetic of decoding: ``--decode-precision``."""

from __future__ import annotations

import warnings

import torch
from torch import nn

from .modules.products import product_type

PRECISIONS = ("fp32", "bf16", "fp16", "int8")
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def in_precision(model: nn.Module, precision: str) -> nn.Module:
    """The model, changed in place, to be decoded with; it is not to be trained any more.

    ``int8`` takes the weights of the linear layers as 8-bit integers and their inputs as such
    with a scale found anew for each batch (torch's dynamic quantisation); the rest is fp32.
    ``bf16`` takes the weights rounded, and computes in fp32 on a processor that multiplies it
    faster.

    Raises:
        ValueError: no such arithmetic on the model's device.
    """
    on_gpu = next(model.parameters()).is_cuda
    if precision == "int8" and on_gpu:
        raise ValueError("--decode-precision int8 is for CPUs: use fp16 or bf16 on a GPU")
    if precision == "fp16" and not on_gpu:
        raise ValueError("--decode-precision fp16 needs a GPU: use bf16 or int8 on a CPU")
    if precision != "int8":
        rounded = model.to(_TYPES[precision])
        return rounded.to(product_type(next(rounded.parameters())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that torchao will have it one day
        return torch.ao.quantization.quantize_dynamic(
            model.float(), {nn.Linear}, dtype=torch.qint8, inplace=True
        )
