"""The type and the number of rows in which matrix products are made."""

from __future__ import annotations

import torch
from torch import Tensor

from .operation import operation


@operation
def product_type(weight: Tensor) -> torch.dtype:
    """What a matrix like ``weight`` is converted to before it is multiplied: nothing else."""
    return weight.dtype


@operation
def row_multiple(weight: Tensor) -> int:
    """What the rows of a packed batch are made a multiple of, by idle rows, for a model with such
    weights."""
    return 1
