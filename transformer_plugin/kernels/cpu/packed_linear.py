"""Linear maps of a search with oneDNN, with each matrix packed in oneDNN's own layout. Without this
kernel a search takes 1.03 times as long in fp32, 1.05 in bf16 (``bench/kernels.py``)."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...modules.linear import linear
from ...modules.operation import is_exactly
from ...modules.products import product_type
from ...search.decoder_state import prepare_decoding
from ..registry import kernel
from . import onednn


class _Packed(NamedTuple):
    """A packed copy of a weight, with the address and version of the weight when it was copied."""

    matrix: Tensor
    address: int
    version: int


_PACKED: weakref.WeakKeyDictionary[nn.Linear, _Packed] = weakref.WeakKeyDictionary()


def packed(layer: nn.Linear, x: Tensor) -> Tensor | None:
    """The packed weight of ``layer``, for a product with ``x``; None if there is none or if the
    weight has changed since."""
    weight, found = layer.weight, _PACKED.get(layer)
    if found is None or x.dtype != weight.dtype or torch.is_grad_enabled():
        return None
    is_current = (found.address, found.version) == (weight.data_ptr(), weight._version)
    return found.matrix if is_current else None


def _is_packable(module: nn.Linear) -> bool:
    return (
        is_exactly(module, nn.Linear)
        and not module.weight.is_inference()
        and onednn.packs(module.weight)
        and product_type(module.weight) == module.weight.dtype
    )


def _is_on_cpu(model: nn.Module, rows: int) -> bool:
    return next(model.parameters()).device.type == "cpu" and not torch.is_grad_enabled()


@kernel(prepare_decoding, _is_on_cpu)
def pack(model: nn.Module, rows: int) -> None:
    """See ``prepare_decoding``. The copies exist as long as their layers."""
    for module in model.modules():
        if not isinstance(module, nn.Linear):
            continue
        weight = module.weight
        if packed(module, weight) is None and _is_packable(module):
            matrix = onednn.pack(weight, rows)
            _PACKED[module] = _Packed(matrix, weight.data_ptr(), weight._version)


def _supports(layer: nn.Module, x: Tensor, relu: bool = False) -> bool:
    return (
        isinstance(layer, nn.Linear)
        and packed(layer, x) is not None
        and is_exactly(layer, nn.Linear)
        and not torch.is_autocast_enabled("cpu")
    )


@kernel(linear, _supports)
def packed_linear(layer: nn.Linear, x: Tensor, relu: bool = False) -> Tensor:
    """See ``linear``."""
    matrix = packed(layer, x)
    assert matrix is not None
    return onednn.affine(x, matrix, layer.bias, relu)
