"""The precision of decoding: ``--decode-precision``."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

from .modules.int8_linear import Int8Linear
from .modules.operation import is_exactly, is_exactly_of
from .modules.products import product_type
from .refusal import Refusal

Model = TypeVar("Model", bound=nn.Module)

PRECISIONS = ("fp32", "bf16", "fp16", "int8")
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)


def fastest_on_gpu() -> str:
    """The fastest precision of this machine's GPUs: bf16 from Ampere on, fp16 before, where bf16 is
    emulated."""
    gpus = range(torch.cuda.device_count())
    ampere = all(torch.cuda.get_device_capability(i) >= (8, 0) for i in gpus)
    return "bf16" if ampere else "fp16"


def in_precision(model: Model, precision: str) -> Model:
    """Converts a model in place for decoding; it can no longer be trained.

    ``bf16`` rounds the weights, and computes in fp32 on processors that multiply fp32 faster.
    ``int8`` is the same, but linear layers have 8-bit weights, and their inputs are rounded to 8
    bits batch by batch (``Int8Linear``). Those of a user's modules are as in bf16.

    Raises:
        Refusal: the model's device does not support the precision.
    """
    on_gpu = next(model.parameters()).is_cuda
    if precision == "int8" and on_gpu:
        raise Refusal("--decode-precision int8 is for CPUs: use fp16 or bf16 on a GPU")
    if precision == "fp16" and not on_gpu:
        raise Refusal("--decode-precision fp16 needs a GPU: use bf16 or int8 on a CPU")
    if precision == "int8":
        _to_int8(model.float())
        precision = "bf16"
    rounded = model.requires_grad_(False).to(_TYPES[precision])
    return rounded.to(product_type(next(rounded.parameters())))


def _to_int8(module: nn.Module, calls_children: bool = False) -> None:
    """Replaces the linear layers that the plugin's modules call. A subclass, or a linear layer with
    a hook, may compute something else, and a user's module may read the weights of its children.

    Args:
        calls_children: of a container, whether the module that it belongs to is the plugin's.
    """
    if type(module) not in _CONTAINERS:
        calls_children = is_exactly_of(module, "transformer_plugin")
    for name, child in module.named_children():
        if calls_children and isinstance(child, nn.Linear) and is_exactly(child, nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            _to_int8(child, calls_children)
