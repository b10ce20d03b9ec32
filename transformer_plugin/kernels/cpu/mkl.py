"""What torch has no name for in the MKL that it brings along: products that write where they are
told to, and products with a matrix that was packed before."""

from __future__ import annotations

import ctypes
import functools
from ctypes import byref, c_char, c_float, c_int, c_size_t
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .library import address

_A, _TRANSPOSED, _AS_IT_IS, _PACKED = (c_char(letter) for letter in b"ATNP")
_ROWS = c_int(256)  # that a packed matrix is laid out for; it serves any number


@functools.cache
def function(name: str) -> Any:
    """One of MKL's, by its name in Fortran, whose arguments are addresses; None without MKL."""
    if not torch.backends.mkl.is_available():
        return None
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libtorch_cpu.so"))
        return getattr(library, name)
    except (AttributeError, OSError):
        return None


class PackedWeight:
    """The matrix of a linear map in the order in which MKL reads it, so that a product with a few
    hundred rows does not begin with a copy of it.

    Args:
        weight: ``[out, in]``, which ``can_be_packed``; not to be changed meanwhile.
    """

    def __init__(self, weight: Tensor) -> None:
        size = function("sgemm_pack_get_size_")
        size.restype = c_size_t
        out, width = map(c_int, weight.shape)
        shape = (byref(out), byref(_ROWS), byref(width))
        self._shape = (out, width)
        self._packed = torch.empty(size(byref(_A), *shape), dtype=torch.uint8)
        scale, given = c_float(1), address(weight)
        function("sgemm_pack_")(
            *(byref(_A), byref(_TRANSPOSED), *shape),
            *(byref(scale), given, byref(width), address(self._packed)),
        )

    def data_ptr(self) -> int:
        """Where it is, for ``sgemm_compute_``."""
        return self._packed.data_ptr()

    def product(self, x: Tensor, result: Tensor) -> Tensor:
        """``x W^T`` into ``result``.

        Args:
            x: float32, ``[N, in]``, contiguous.
            result: ``[N, out]``, contiguous.
        """
        out, width = self._shape
        rows, zero = c_int(x.size(0)), c_float(0)
        function("sgemm_compute_")(
            *(byref(_PACKED), byref(_AS_IT_IS), byref(out), byref(rows), byref(width)),
            *(address(self._packed), byref(width), address(x), byref(width), byref(zero)),
            *(address(result), byref(out)),
        )
        return result


def can_be_packed(weight: Tensor) -> bool:
    """Whether MKL packs such a matrix."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.is_contiguous()
        and all(map(function, ("sgemm_pack_get_size_", "sgemm_pack_", "sgemm_compute_")))
    )
