"""Adam on a CPU in one pass over each weight. In bf16 an update takes half as long as torch's fused
one, for which gradients are copied to float32 and weights to bf16."""

from __future__ import annotations

import ctypes
import math
from ctypes import c_float, c_int64

import torch

from ...modules.adam import AdamOptions, AdamTensors, adam_update
from ..plain_modules import are_alike
from ..registry import kernel
from .library import is_supported, run


class _Adam(ctypes.Structure):
    """``struct Adam``."""

    _fields_ = [
        ("size", c_int64),
        *((name, c_float) for name in ("factor", "beta1", "rest1", "beta2", "rest2")),
        *((name, c_float) for name in ("step_size", "eps", "kept")),
    ]


def _supports(parameters: list[AdamTensors], options: AdamOptions) -> bool:
    return all(
        each.weight.dtype == each.mean.dtype == each.square.dtype == torch.float32
        and is_supported(each.gradient)
        and are_alike(*each)
        and (each.rounded is None or each.rounded.dtype == each.gradient.dtype)
        for each in parameters
    )


@kernel(adam_update, _supports)
def adam_in_one_pass(parameters: list[AdamTensors], options: AdamOptions) -> None:
    """See ``adam_update``."""
    step, lr, beta1, beta2, eps, weight_decay, factor = options
    step_size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    betas = beta1, 1 - beta1, beta2, 1 - beta2
    numbers = float(factor), *betas, step_size, eps, 1 - lr * weight_decay
    for weight, gradient, *moments, rounded in parameters:
        given = [gradient, weight, *moments, rounded]
        run("adam", gradient.dtype, _Adam(weight.numel(), *numbers), given)
        changed = [weight, *moments] if rounded is None else [weight, *moments, rounded]
        for each in changed:
            torch.autograd.graph.increment_version(each)
