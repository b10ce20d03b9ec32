"""float32 weights in panels of columns, for a product in C++ (``csrc/panel_linear.cpp``). With
oneDNN instead, a sentence alone takes 1.2 to 1.6 times as long (docs/experiments.md)."""

from __future__ import annotations

import functools
from ctypes import c_int64

import torch
from torch import Tensor

from ... import processor
from .library import is_supported, kernels, operators


def multiplies(weight: Tensor) -> bool:
    """Whether C++ multiplies by the panels of ``weight``, ``[F, D]``, faster than oneDNN."""
    return (
        weight.dtype == torch.float32
        and processor.has_avx2()
        and is_supported(weight)
        and weight.size(0) >= columns()
        and operators() is not None
    )


@functools.cache
def columns() -> int:
    """The width of a panel; it needs ``kernels()``."""
    library = kernels()
    assert library is not None
    return c_int64.in_dll(library, "panel_columns").value


def pack(weight: Tensor) -> Tensor:
    """The panels, ``[P, D, C]``: C rows of the weight are the columns of a panel. The last panel
    overlaps the one before unless F is a multiple of C."""
    width = weight.size(0)
    starts = torch.arange(0, width, columns()).clamp(max=width - columns())
    rows = starts.unsqueeze(1) + torch.arange(columns())
    return weight.detach()[rows].transpose(1, 2).contiguous()
