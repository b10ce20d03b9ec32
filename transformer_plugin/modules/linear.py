"""Linear maps, the projections of section 3.2 and both maps of equation (2)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from .operation import operation


@operation
def linear(layer: nn.Module, x: Tensor, relu: bool = False) -> Tensor:
    """x W^T + b, or its ReLU; ``[..., D]`` to ``[..., F]``.

    Args:
        layer: ``nn.Linear`` with a bias, or ``Int8Linear``.
    """
    y: Tensor = layer(x)
    return F.relu(y) if relu else y
