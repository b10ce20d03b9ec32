"""Linear maps on a CPU whose bias and ReLU cost no pass of their own, made in the type and by the
library that are fastest."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

from . import onednn
from .product_type import product_type
from .remade import recipe_of


def linear(layer: nn.Module, x: Tensor, relu: bool = False) -> Tensor:
    """x W^T + b, or its ReLU; ``[..., D]`` to ``[..., F]``.

    Args:
        layer: ``nn.Linear`` with a bias, or what quantisation put in its place.
    """
    if type(layer) is nn.Linear and _is_supported(x, layer.weight):
        map_rows = _Linear.apply if torch.is_grad_enabled() else _linear
        y: Tensor = map_rows(x, layer.weight, layer.bias, relu)
        return y
    y = layer(x)
    return F.relu_(y) if relu else y


def _is_supported(x: Tensor, weight: Tensor) -> bool:
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    if x.dtype == weight.dtype == torch.bfloat16:
        return onednn.multiplies(weight) or product_type(weight) == torch.float32
    # A step of decoding has another number of rows each time, which training has not.
    return (
        x.dtype == weight.dtype == torch.float32
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and onednn.multiplies(weight)
    )


def _linear(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """In the type of ``x``, whatever type it is multiplied in."""
    wide = product_type(weight)
    x_wide, matrix, constant = x.to(wide), weight.to(wide), bias.to(wide)
    if onednn.multiplies(matrix):
        return onednn.affine(x_wide, matrix, constant, relu).to(x.dtype)
    y = F.linear(x_wide, matrix, constant).to(x.dtype)
    return y.relu_() if relu else y


class _Linear(torch.autograd.Function):
    """Keeps nothing in the type of the products, where that is a wider one."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        y = _linear(x, weight, bias, relu)
        remake, sources = recipe_of(x)
        ctx.save_for_backward(weight, *sources, *([y] if relu else []))
        ctx.remake, ctx.relu = remake, relu  # type: ignore[attr-defined]
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_y):  # type: ignore[no-untyped-def]
        weight, *sources = ctx.saved_tensors
        if ctx.relu:
            grad_y = torch.ops.aten.threshold_backward(grad_y, sources.pop(), 0)
        x, wide = ctx.remake(*sources), product_type(weight)
        grad_rows, rows = (whole.flatten(0, -2).to(wide) for whole in (grad_y, x))
        grad_x = onednn.product(grad_rows, weight.to(wide)).view_as(x)
        found = (grad_x, grad_rows.t() @ rows, grad_rows.sum(dim=0))
        return *(gradient.to(weight.dtype) for gradient in found), None
