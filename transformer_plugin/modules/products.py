"""The data type and the number of rows of matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from .operation import operation


@operation
def product_type(weight: Tensor) -> torch.dtype:
    """The type that a matrix like ``weight`` is converted to before products: its own."""
    return weight.dtype


@operation
def row_multiple(weight: Tensor) -> int:
    """The multiple to which idle rows round up the rows of a packed batch, for a model with such
    weights."""
    return 1
