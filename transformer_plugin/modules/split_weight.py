"""Float32 weights behind bf16 ones, kept as the sixteen bits that those lack."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SplitWeight(nn.Parameter):
    """What an optimizer takes for a float32 weight of the same shape, and has only the half of.

    bf16 is the upper half of a float32. So a weight that the model has in bf16 is here its lower
    half alone, from which both give the float32 weight: four bytes instead of six. It is rounded
    to nearest, as torch rounds, but for ties, which go away from zero.

    As a tensor it holds no number of the weight: all that it shows are NaN, which take no memory.

    Attributes:
        rounded: the model's weight, bf16, any shape.
        rest: the lower half, as a signed difference of bits, int16.
    """

    rounded: nn.Parameter
    rest: Tensor

    def __new__(cls, rounded: nn.Parameter) -> SplitWeight:
        weight: SplitWeight = super().__new__(cls, torch.tensor(torch.nan).expand(rounded.shape))
        weight.rounded = rounded
        weight.rest = torch.zeros_like(rounded, dtype=torch.int16)
        return weight

    def exact(self) -> Tensor:
        """The weight in float32, made for the caller."""
        bits = self.rounded.detach().view(torch.int16).to(torch.int32) << 16
        return (bits + self.rest).view(torch.float32)

    def set(self, exact: Tensor) -> None:
        """Gives the weight these values, float32."""
        bits = exact.contiguous().view(torch.int32)
        self.rest.copy_(bits)  # their lower half
        self.rounded.detach().view(torch.int16).copy_((bits + 0x8000) >> 16)
