"""Linear maps of a search with packed matrices: in oneDNN's own layout, or in panels
(``panels.py``). Without this kernel a search takes 1.56 times as long in fp32, 1.11 in bf16
(``bench/kernels.py``). C++ multiplies a few 8-bit rows in less time than a call of oneDNN takes, so
a sentence alone takes half as long.

Trainable weights are never packed: optimizers change them through ``.data``, which torch's counter
of changes does not see. Others are compared at the start of each search.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...modules.int8_linear import Int8Linear
from ...modules.linear import linear
from ...modules.products import product_type
from ...search.decoder_state import prepare_decoding
from ..plain_modules import Linear, is_plain_linear
from ..registry import kernel
from . import onednn, panels
from .library import TYPES, entry_point, is_supported, openmp_entry_point, operators

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Packed(NamedTuple):
    """A packed copy of a weight, with its plain copy, address and version at that time."""

    matrix: Tensor
    plain: Tensor
    address: int
    version: int


_PACKED: weakref.WeakKeyDictionary[Linear, _Packed] = weakref.WeakKeyDictionary()


def packed(layer: Linear, x: Tensor) -> Tensor | None:
    """The packed weight of ``layer``, for a product with ``x``. None if there is none, if the
    weight has become trainable or torch has counted a change of it since, or if C++ cannot read the
    scale or the bias of an 8-bit layer."""
    found = _PACKED.get(layer)
    if found is None or torch.is_grad_enabled():
        return None
    weight = layer.weight
    if isinstance(layer, Int8Linear):
        fits = x.dtype in TYPES and _has_float_operands(layer)
    else:
        fits = x.dtype == weight.dtype
    is_current = (
        not weight.requires_grad
        and not weight.is_inference()  # a tensor of inference has no version
        and (found.address, found.version) == (weight.data_ptr(), weight._version)
    )
    return found.matrix if fits and is_current else None


def _is_packable(layer: Linear) -> bool:
    weight = layer.weight
    return (
        not weight.requires_grad
        and not weight.is_inference()
        and onednn.packs(weight)
        and product_type(weight) == weight.dtype
        and (isinstance(layer, nn.Linear) or _multiplies_in_8_bits(layer))
    )


def _multiplies_in_8_bits(layer: Int8Linear) -> bool:
    return (
        _has_float_operands(layer)
        and is_supported(layer.scale, layer.weight.size(1))
        and operators() is not None
    )


def _has_float_operands(layer: Int8Linear) -> bool:
    scale, bias = layer.scale, layer.bias
    is_scale = (scale.dtype, scale.shape) == (torch.float32, layer.weight.shape[:1])
    return is_scale and (bias is None or bias.dtype == torch.float32)


def _is_inference_on_cpu(model: nn.Module, rows: int) -> bool:
    return next(model.parameters()).device.type == "cpu" and not torch.is_grad_enabled()


@kernel(prepare_decoding, _is_inference_on_cpu)
def pack(model: nn.Module, rows: int) -> None:
    """See ``prepare_decoding``. The copies exist as long as their layers."""
    for layer in model.modules():
        if not isinstance(layer, Linear):
            continue
        if not is_plain_linear(layer):  # its weight may be computed when it is read
            _PACKED.pop(layer, None)
            continue
        weight = layer.weight
        row = torch.empty(0) if weight.dtype == torch.int8 else weight
        if packed(layer, row) is not None and _same_bits(_PACKED[layer].plain, weight):
            continue
        _PACKED.pop(layer, None)
        if _is_packable(layer):
            in_panels = panels.multiplies(weight)
            matrix = panels.pack(weight) if in_panels else onednn.pack(weight, rows)
            plain = weight.clone(memory_format=torch.contiguous_format)
            _PACKED[layer] = _Packed(matrix, plain, weight.data_ptr(), weight._version)


def _same_bits(a: Tensor, b: Tensor) -> bool:
    """Takes half as long as ``torch.equal``."""
    a, b = a.contiguous(), b.contiguous()
    return a.nbytes == b.nbytes and not _memcmp(a.data_ptr(), b.data_ptr(), a.nbytes)


def _supports(layer: nn.Module, x: Tensor, relu: bool = False) -> bool:
    return (
        isinstance(layer, Linear)
        and packed(layer, x) is not None
        and is_plain_linear(layer)
        and x.size(-1) == layer.weight.size(1)
        and x.numel() > 0
        and not torch.is_autocast_enabled("cpu")
    )


@kernel(linear, _supports, stands_for=[product_type, Int8Linear, nn.Linear])
def packed_linear(layer: Linear, x: Tensor, relu: bool = False) -> Tensor:
    """See ``linear``."""
    needed = operands(layer)
    if needed.plain is None:
        return onednn.affine(x, needed.matrix, needed.bias, relu)
    found = operators()
    assert found is not None
    product = found.linear.default
    y: Tensor = product(x.contiguous(), *needed, relu, product_functions(x.dtype))
    return y


@functools.cache
def product_functions(dtype: torch.dtype) -> list[int]:
    """Addresses of functions that the operators call for products with rows of this type."""
    names = "panel_linear", "quantise", "int8_linear"
    return [openmp_entry_point().value or 0, *(entry_point(name, dtype) for name in names)]


class Operands(NamedTuple):
    """What rows are multiplied by.

    Attributes:
        matrix: a weight ``[F, D]`` packed by oneDNN, or its panels.
        bias: ``[F]``, or None.
        plain: the weight as it is; None if oneDNN alone multiplies by it.
        scale: of each row of an 8-bit weight, ``[F]``; None of others.
    """

    matrix: Tensor
    bias: Tensor | None
    plain: Tensor | None
    scale: Tensor | None


def operands(layer: Linear) -> Operands:
    """Those of a layer with a packed weight. Neither oneDNN nor C++ reads strides."""
    found = _PACKED[layer]
    bias = None if layer.bias is None else layer.bias.contiguous()
    scale = layer.scale.contiguous() if isinstance(layer, Int8Linear) else None
    by_onednn = scale is None and found.matrix.is_mkldnn
    return Operands(found.matrix, bias, None if by_onednn else found.plain, scale)
