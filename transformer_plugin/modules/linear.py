"""Linear maps in bf16 on a CPU: bias and ReLU cost no pass of their own, or the product is made in
float32 where that is faster."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

from .product_type import product_type
from .remade import recipe_of


def linear(layer: nn.Module, x: Tensor, relu: bool = False) -> Tensor:
    """x W^T + b, or its ReLU; ``[..., D]`` to ``[..., F]``.

    Args:
        layer: ``nn.Linear`` with a bias, or what quantisation put in its place.
    """
    if type(layer) is nn.Linear and _is_supported(x, layer.weight):
        map_rows = _HalfLinear.apply if torch.is_grad_enabled() else _half_linear
        y: Tensor = map_rows(x, layer.weight, layer.bias, relu)
        return y
    y = layer(x)
    return F.relu_(y) if relu else y


def _is_supported(x: Tensor, weight: Tensor) -> bool:
    return (
        x.dtype == weight.dtype == torch.bfloat16
        and x.device.type == weight.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and (_has_fused_product() or product_type(weight) == torch.float32)
    )


@functools.cache
def _has_fused_product() -> bool:
    """Whether torch has oneDNN, and oneDNN bf16 for this processor."""
    operations = torch.ops.mkldnn
    return (
        torch.backends.mkldnn.is_available()
        and hasattr(operations, "_linear_pointwise")
        and bool(operations._is_mkldnn_bf16_supported())
    )


def _half_linear(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """``linear`` of bf16, in bf16."""
    wide = product_type(weight)
    if wide != weight.dtype:
        y = F.linear(x.to(wide), weight.to(wide), bias.to(wide)).to(weight.dtype)
        return y.relu_() if relu else y
    # torch copies the bias into the result, adds the product to it, and takes the ReLU after it;
    # oneDNN does all that while a part of the product is in registers.
    activation = "relu" if relu else "none"
    y = torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, activation, [], "")
    return y


class _HalfLinear(torch.autograd.Function):
    """Keeps bf16 alone, whatever type multiplies it."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        y = _half_linear(x, weight, bias, relu)
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
        grad_y, x_rows, matrix = grad_y.to(wide), x.flatten(0, -2).to(wide), weight.to(wide)
        grad_rows = grad_y.flatten(0, -2)
        found = (grad_y @ matrix, grad_rows.t() @ x_rows, grad_rows.sum(dim=0))
        return *(gradient.to(weight.dtype) for gradient in found), None
