"""Dropout, section 5.4."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from .operation import operation


@operation
def dropout(x: Tensor, rate: float) -> Tensor:
    """Sets elements to zero with probability ``rate``, divides the rest by 1 - rate; any shape."""
    return F.dropout(x, rate) if rate else x
