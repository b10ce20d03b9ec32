"""A linear map in 8-bit integers, for decoding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_LARGEST = 127  # largest absolute value of a quantised weight
# Steps of an input: sums of two products fit into the 16 bits of processors without VNNI.
_LEVELS = 127
_SMALLEST = 1e-30  # scale of inputs that are all zero


class Int8Linear(nn.Module):
    """x W^T + b with weights and inputs rounded to 8 bits, ``[..., D]`` to ``[..., F]``.

    Jacob et al., *Quantization and Training of Neural Networks for Efficient
    Integer-Arithmetic-Only Inference* (2018): https://arxiv.org/abs/1712.05877.

    Args:
        layer: the map to round.

    Attributes:
        weight: ``[F, D]``, int8.
        scale: quantisation scale of each row of the weight, ``[F]``, float32.
        bias: ``[F]``, float32, or None.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.training = layer.training
        weight = layer.weight.detach().float()
        scale = (weight.abs().amax(dim=1) / _LARGEST).clamp_min(_SMALLEST)
        # Attributes, not buffers, so that no conversion of the model rounds them.
        self.weight = (weight / scale.unsqueeze(1)).round().to(torch.int8)
        self.scale = scale
        self.bias = None if layer.bias is None else layer.bias.detach().float()

    def forward(self, x: Tensor) -> Tensor:
        """Maps rows of any floating-point type; the result has the same."""
        steps, scale, zero_point = quantise(x)
        y = (steps.float() - zero_point) @ self.weight.float().t() * (scale * self.scale)
        return (y if self.bias is None else y + self.bias).to(x.dtype)


def quantise(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rounds numbers to 8 bits: x is about (quantised - zero point) * scale.

    Returns:
        The quantised numbers, 0 to 127, uint8, with the shape of ``x``; the scale; and the zero
        point, the quantised 0.
    """
    x = x.float()
    low, high = (x if x.numel() else x.new_zeros(1)).aminmax()
    low, high = low.clamp(max=0.0), high.clamp(min=0.0)
    scale = ((high - low) / _LEVELS).clamp_min(_SMALLEST)
    inverse = 1 / scale
    zero_point = (-low * inverse).round()
    steps = ((x * inverse).round() + zero_point).clamp(0, _LEVELS)
    return steps.to(torch.uint8), scale, zero_point
