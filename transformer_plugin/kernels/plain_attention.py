"""Which attention sub-layers compute equation (1) and nothing else."""

from __future__ import annotations

from torch import nn

from ..modules.attention import MultiHeadAttention
from ..modules.attention_score import AttentionScore
from ..modules.operation import is_exactly


def is_equation_1(module: nn.Module) -> bool:
    """Whether ``module`` is softmax(scale Q K^T) V in each head, without dropout."""
    return (
        isinstance(module, MultiHeadAttention)
        and is_exactly(module, MultiHeadAttention)
        and is_exactly(module.score, AttentionScore)
        and module.score.is_plain
        and isinstance(module.score.scale, float)
        and not (module.dropout and module.training)
    )
