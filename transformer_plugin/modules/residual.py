"""The residual connection and layer normalisation around each sub-layer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from . import compiled_residual
from .dropout import residual_dropout


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), sections 3.1 and 5.4; or pre-norm.

    Args:
        d_model: width of the model, D.
        dropout: rate on the sub-layer's output.
        pre_norm: x + Dropout(Sublayer(LayerNorm(x))) instead.
        eps: added to the variance (1e-6 in the authors' release).
    """

    def __init__(self, d_model: int, dropout: float, pre_norm: bool, eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.dropout = dropout
        self.pre_norm = pre_norm

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """``[..., D]`` to ``[..., D]``."""
        y = sublayer(self.norm(x) if self.pre_norm else x)
        rate = self.dropout if self.training else 0.0
        if self.pre_norm:
            return residual_dropout(x, y, rate)
        learning = torch.is_grad_enabled()  # else there is little to gain, and the call costs more
        if learning and compiled_residual.is_supported(x, y, self.norm):
            return compiled_residual.residual_norm(x, y, rate, self.norm)
        normalised: Tensor = self.norm(residual_dropout(x, y, rate))
        return normalised
