"""float32 weights in panels of 16 columns, for a product in C++ (``csrc/panel_linear.cpp``). With
oneDNN instead, a sentence alone takes 1.2 to 1.6 times as long on a processor with AVX2 and no
AVX-512 (docs/experiments.md)."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import processor
from .library import is_supported, operators

_COLUMNS = 16


def multiplies(weight: Tensor) -> bool:
    """Whether C++ multiplies by the panels of ``weight``, ``[F, D]``, faster than oneDNN."""
    return (
        weight.dtype == torch.float32
        and weight.size(0) >= _COLUMNS
        and processor.has_avx2_only()
        and is_supported(weight)
        and operators() is not None
    )


def pack(weight: Tensor) -> Tensor:
    """The panels, ``[P, D, 16]``: 16 rows of the weight are the columns of a panel. The last panel
    overlaps the one before unless F is a multiple of 16."""
    width = weight.size(0)
    starts = torch.arange(0, width, _COLUMNS).clamp(max=width - _COLUMNS)
    rows = starts.unsqueeze(1) + torch.arange(_COLUMNS)
    return weight.detach()[rows].transpose(1, 2).contiguous()
