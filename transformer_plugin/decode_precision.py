"""The precision of decoding: ``--decode-precision``."""

from __future__ import annotations

import warnings
from typing import TypeVar

import torch
from torch import nn

from .modules.products import product_type

Model = TypeVar("Model", bound=nn.Module)

PRECISIONS = ("fp32", "bf16", "fp16", "int8")
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def fastest_on_gpu() -> str:
    """The fastest precision of this machine's GPUs: bf16 from Ampere on, fp16 before, where bf16 is
    emulated."""
    gpus = range(torch.cuda.device_count())
    ampere = all(torch.cuda.get_device_capability(i) >= (8, 0) for i in gpus)
    return "bf16" if ampere else "fp16"


def in_precision(model: Model, precision: str) -> Model:
    """Converts a model in place for decoding; it can no longer be trained.

    ``int8`` is torch's dynamic quantisation: linear layers have 8-bit weights, their inputs are
    quantised batch by batch, and everything else is in fp32. ``bf16`` rounds the weights, and
    computes in fp32 on processors that multiply fp32 faster.

    Raises:
        ValueError: the model's device does not support the precision.
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
        warnings.simplefilter("ignore")  # torch announces the move to torchao
        quantised: Model = torch.ao.quantization.quantize_dynamic(
            model.float(), {nn.Linear}, dtype=torch.qint8, inplace=True
        )
    return quantised
