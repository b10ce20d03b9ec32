"""The residual connection of section 5.4 in one pass on a CPU, and its gradient in another."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int64, c_uint64

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from ...modules.operation import is_exactly
from ...modules.residual import residual_norm
from ..registry import kernel
from . import library
from .dropout import LANE_VALUES
from .library import run

_ROWS = 64  # kRows: those of a task, which sums its part of the gradients of gain and bias


class _Residual(ctypes.Structure):
    """``struct Residual``."""

    _fields_ = [
        *((name, c_int64) for name in ("rows", "width")),
        ("seed", c_uint64),
        ("dropped", c_int64),
        *((name, c_float) for name in ("scale", "epsilon")),
    ]


def _supports(x: Tensor, y: Tensor, rate: float, norm: nn.Module) -> bool:
    return (
        torch.is_grad_enabled()  # else there is little to gain, and the call costs more
        and is_exactly(norm, nn.LayerNorm)
        and isinstance(norm, nn.LayerNorm)
        and norm.bias is not None
        and norm.normalized_shape == (x.size(-1),)
        and x.dtype == y.dtype == norm.weight.dtype
        and x.shape == y.shape
        and library.is_supported(x, x.size(-1))
    )


@kernel(residual_norm, _supports)
def fused_residual_norm(x: Tensor, y: Tensor, rate: float, norm: nn.LayerNorm) -> Tensor:
    """See ``residual_norm``; the rate is rounded as in ``dropout``."""
    dropped = round(rate * LANE_VALUES)
    seed = int(torch.empty((), dtype=torch.int64).random_()) if dropped else 0
    scale = 1 / (1 - rate) if rate < 1 else 0.0
    numbers = _Residual(x.numel() // x.size(-1), x.size(-1), seed, dropped, scale, norm.eps)
    out: Tensor = _ResidualNorm.apply(
        numbers, x.contiguous(), y.contiguous(), norm.weight, norm.bias
    )
    return out


class _ResidualNorm(torch.autograd.Function):
    """Keeps the sum and its moments; what was dropped is drawn again."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, numbers: _Residual, x: Tensor, y: Tensor, gain: Tensor, bias: Tensor
    ) -> Tensor:
        total, out = torch.empty_like(x), torch.empty_like(x)
        moments = torch.empty(2, numbers.rows, dtype=torch.float32)  # mean, 1 / deviation
        run("residual_norm", x.dtype, numbers, [x, y, gain, bias, total, *moments, out])
        ctx.save_for_backward(total, moments, gain)
        ctx.numbers = numbers  # type: ignore[attr-defined]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):  # type: ignore[no-untyped-def]
        total, moments, gain = ctx.saved_tensors
        numbers: _Residual = ctx.numbers
        grad_x = torch.empty_like(total)
        grad_y = torch.empty_like(total) if numbers.dropped else None
        shares = torch.zeros(-(-numbers.rows // _ROWS), 2, numbers.width, dtype=torch.float32)
        given = [grad_out.contiguous(), total, *moments, gain]
        run("residual_norm_back", total.dtype, numbers, [*given, grad_x, grad_y, shares])
        grad_gain, grad_bias = shares.sum(dim=0).to(gain.dtype)
        return None, grad_x, grad_x if grad_y is None else grad_y, grad_gain, grad_bias
