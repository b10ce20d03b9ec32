"""A decoder's weights as a search on a CPU reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from . import compiled, compiled_step, mkl

_WORTH_PACKING = 8  # rows; with fewer MKL's product takes the matrices as they are


class DecodingWeights(NamedTuple):
    """For the batches of one call, between which no weight changes.

    Attributes:
        whole_step: the layers in one call; None where no kernel can do their work.
        projection: the pre-softmax matrix, where it is packed.
    """

    whole_step: compiled_step.CompiledStep | None = None
    projection: mkl.PackedWeight | None = None

    @classmethod
    def of(cls, layers: Sequence[nn.Module], projection: nn.Linear, rows: int) -> DecodingWeights:
        """Those of a decoder.

        Args:
            projection: ``[V, D]``.
            rows: about as many go through it at once.
        """
        weight, packed = projection.weight, rows >= _WORTH_PACKING
        if not isinstance(weight, Tensor):  # a method: that of a quantised layer
            return cls()
        step = None
        if compiled.is_supported(weight) and compiled_step.is_supported(layers, weight.dtype):
            step = compiled_step.CompiledStep(layers, packed)
        packable = packed and mkl.can_be_packed(weight)
        return cls(step, mkl.PackedWeight(weight) if packable else None)
