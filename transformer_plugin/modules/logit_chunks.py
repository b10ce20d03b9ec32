"""Pre-softmax scores a few rows at a time, so that what is done with them happens in the cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from .mkl import PackedWeight

_CPU_BYTES = 4 << 20  # of a chunk: twice an inner cache, and enough rows for the product
_GPU_BYTES = 1 << 30
_LEAST_ROWS = 64


class LogitChunks:
    """The pre-softmax linear map (section 3.4) of features, some rows at a time.

    All chunks lie in one buffer, which is kept: fresh memory of this size costs a page fault for
    every few rows, and those cost more than the product.

    Args:
        projection: ``[V, D]``, without bias.
        packed: its weight, where it is packed.
    """

    def __init__(self, projection: nn.Linear, packed: PackedWeight | None = None) -> None:
        self.projection = projection
        self._packed = packed
        self._buffer: Tensor | None = None

    def __call__(self, features: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Logits of ``[R, D]``: which rows, and their logits ``[r, V]``, which hold until the next
        ones are asked for."""
        start = 0
        while start < features.size(0):
            rows = slice(start, min(start + self._rows(features), features.size(0)))
            yield rows, self._logits(features[rows])
            start = rows.stop

    def _rows(self, features: Tensor) -> int:
        classes = self.projection.out_features
        room = _GPU_BYTES if features.is_cuda else _CPU_BYTES
        return max(_LEAST_ROWS, room // (4 * classes))

    def _logits(self, features: Tensor) -> Tensor:
        weight = self.projection.weight
        if not isinstance(weight, Tensor):  # a method: that of a quantised layer
            return self.projection(features)
        if self._buffer is None or self._buffer.size(0) < features.size(0):
            size = (features.size(0), self.projection.out_features)
            self._buffer = torch.empty(size, dtype=weight.dtype, device=features.device)
        logits = self._buffer[: features.size(0)]
        if self._packed is not None:
            return self._packed.product(features.contiguous(), logits)
        return torch.mm(features, weight.t(), out=logits)
