"""Position-wise feed-forward network, section 3.3 of the paper."""

from __future__ import annotations

from torch import Tensor, nn

from .dropout import dropout
from .linear import linear


class PositionwiseFeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation (2).

    Args:
        d_model: width of the model, D.
        d_ff: inner width, F.
        dropout: rate after the ReLU (none in the paper).
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """``[..., D]`` to ``[..., D]``."""
        hidden = linear(self.inner, x, relu=True)
        return linear(self.outer, dropout(hidden, self.dropout if self.training else 0.0))
