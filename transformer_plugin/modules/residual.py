"""The residual connection and layer normalisation around each sub-layer."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from .dropout import dropout


def layer_norm(d_model: int, eps: float) -> nn.Module:
    """The layer normalisation of section 3.1, of each sub-layer and, with pre-norm, of a stack.

    Args:
        eps: added to the variance (1e-6 in the authors' release).
    """
    return nn.LayerNorm(d_model, eps=eps)


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), sections 3.1 and 5.4; or pre-norm.

    Args:
        d_model: width of the model, D.
        dropout: rate on the sub-layer's output.
        pre_norm: x + Dropout(Sublayer(LayerNorm(x))) instead.
        eps: see ``layer_norm``.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.1, pre_norm: bool = False, eps: float = 1e-6
    ) -> None:
        super().__init__()
        self.norm = layer_norm(d_model, eps)
        self.dropout = dropout
        self.pre_norm = pre_norm

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """``[..., D]`` to ``[..., D]``."""
        rate = self.dropout if self.training else 0.0
        if self.pre_norm:
            return x + dropout(sublayer(self.norm(x)), rate)
        normalised: Tensor = self.norm(x + dropout(sublayer(x), rate))
        return normalised
