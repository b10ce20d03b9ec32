"""Matrix products with oneDNN where torch is slower: torch computes bias and ReLU in bf16 in
separate passes, and uses MKL for float32, which is slower on some processors."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ... import processor
from ...modules.products import product_type


def multiplies(matrix: Tensor) -> bool:
    """Whether oneDNN should compute products with ``matrix``."""
    if matrix.device.type != "cpu" or not _is_available():
        return False
    wanted = product_type(matrix)
    return (wanted == torch.bfloat16 and _has_bf16()) or (
        wanted == torch.float32 and processor.has_slow_mkl()
    )


def packs(matrix: Tensor) -> bool:
    """Whether oneDNN multiplies faster by ``matrix`` once it is packed."""
    if matrix.device.type != "cpu" or not _is_available():
        return False
    has_type = {torch.float32: True, torch.bfloat16: _has_bf16(), torch.int8: _has_int8()}
    return has_type.get(matrix.dtype, False)


def pack(weight: Tensor, rows: int) -> Tensor:
    """The matrix ``[out, in]`` of ``affine`` or of 8-bit products, packed for products with about
    ``rows`` rows."""
    found: Tensor
    if weight.dtype == torch.int8:
        found = torch.ops.onednn.qlinear_prepack.default(
            weight.contiguous(), [rows, weight.size(1)]
        )
    else:
        found = torch.ops.mkldnn._reorder_linear_weight.default(weight.detach(), rows)
    return found


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """``left right`` of ``[N, K]`` and ``[K, M]``; in ``out`` unless oneDNN computes it."""
    if left.dtype == torch.float32 and multiplies(right):
        return affine(left, right.t(), None)
    return torch.mm(left, right, out=out)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool = False) -> Tensor:
    """x W^T + b, or its ReLU, for a ``weight`` that oneDNN ``multiplies``, or that it has packed.

    torch copies the bias into the result, adds the product and then applies the ReLU. oneDNN does
    all three while a part of the product is in registers.

    Unlike torch's, oneDNN's ReLU makes NaN 0 in some of its kernels: a NaN of the first product of
    a feed-forward network is seen in its gradients, not in the loss.
    """
    bias = None if bias is None else bias.contiguous()  # oneDNN ignores its strides
    activation = "relu" if relu else "none"
    y: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, activation, [], "")
    return y


@functools.cache
def _is_available() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@functools.cache
def _has_bf16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@functools.cache
def _has_int8() -> bool:
    return hasattr(torch.ops.onednn, "qlinear_pointwise")
