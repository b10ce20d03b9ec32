"""Linear maps with fused bias and ReLU, computed in the fastest data type by the fastest library.
Without this kernel a training step takes 1.31 times as long in fp32
(``bench/kernels.py``)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

from ...modules.linear import linear
from ...modules.products import product_type
from ..plain_modules import is_plain_linear
from ..registry import kernel
from . import onednn


def _supports(layer: nn.Module, x: Tensor, relu: bool = False) -> bool:
    if x.device.type != "cpu" or not isinstance(layer, nn.Linear) or not is_plain_linear(layer):
        return False
    weight = layer.weight
    if layer.bias is None or x.size(-1) != weight.size(1):
        return False
    if x.dtype == weight.dtype == torch.bfloat16:
        return onednn.multiplies(weight) or product_type(weight) == torch.float32
    # Only in training: each decoding step has a different number of rows.
    return (
        x.dtype == weight.dtype == torch.float32
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and onednn.multiplies(weight)
    )


@kernel(linear, _supports, stands_for=[product_type, nn.Linear])
def fused_linear(layer: nn.Linear, x: Tensor, relu: bool = False) -> Tensor:
    """See ``linear``."""
    map_rows = _Linear.apply if torch.is_grad_enabled() else _linear
    y: Tensor = map_rows(x, layer.weight, layer.bias, relu)
    return y


def _linear(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """The map in the type of ``x``, whatever the type of the product."""
    wide = product_type(weight)
    x_wide, matrix, constant = x.to(wide), weight.to(wide), bias.to(wide)
    if onednn.multiplies(matrix):
        return onednn.affine(x_wide, matrix, constant, relu).to(x.dtype)
    y = F.linear(x_wide, matrix, constant).to(x.dtype)
    return y.relu_() if relu else y


class _Linear(torch.autograd.Function):
    """Saves no tensor for backward in the type of the products, which may be wider."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        y = _linear(x, weight, bias, relu)
        ctx.save_for_backward(x, weight, *([y] if relu else []))
        ctx.relu = relu  # type: ignore[attr-defined]
        return y

    @staticmethod
    def backward(ctx, grad_y):  # type: ignore[no-untyped-def]
        # oneDNN's product cannot be differentiated again, as for second derivatives.
        product = torch.mm if torch.is_grad_enabled() else onednn.product
        x, weight, *result = ctx.saved_tensors
        if ctx.relu:
            grad_y = torch.ops.aten.threshold_backward(grad_y, *result, 0)
        wide = product_type(weight)
        grad_rows, rows = (whole.reshape(-1, whole.size(-1)).to(wide) for whole in (grad_y, x))
        wanted_x, wanted_weight, wanted_bias, _relu = ctx.needs_input_grad
        found = (
            product(grad_rows, weight.to(wide)).view_as(x) if wanted_x else None,
            grad_rows.t() @ rows if wanted_weight else None,
            grad_rows.sum(dim=0) if wanted_bias else None,
        )
        return *(None if each is None else each.to(weight.dtype) for each in found), None
