"""What stands in for the classes that old checkpoints name, so that reading one calls none of them.

A pickle names its classes by module and name. The unpickler is given these in their place: they
keep values and nothing else, so a forged numpy type, say, never reaches numpy's C code.
"""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np


class _NumpyType:
    """The description of a number that ``numpy.dtype`` pickles as: ``f8`` and the like."""

    def __init__(self, code: str, *_align_and_copy: bool) -> None:
        self.code = code
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = str(state[1])

    def dtype(self) -> np.dtype[Any]:
        """The numpy type, if it is that of a plain number."""
        if not re.fullmatch(r"[<>|=][bifu][1248]", f"{self.order}{self.code}"):
            raise ValueError(f"numpy type {self.order}{self.code} is not that of a number")
        return np.dtype(self.order + self.code)


class _NumpyScalar:
    """Calling it gives the number itself, as numpy's own function does."""

    def __new__(cls, kind: _NumpyType, data: bytes) -> Any:
        return np.frombuffer(data, kind.dtype(), count=1)[0]


class _NumpyArray(np.ndarray):
    """An array of plain numbers, such as the counts that ``--eval-bleu`` adds up.

    It can only be made empty, and filled with what is checked; it is saved as numpy's own.
    """

    def __new__(cls) -> _NumpyArray:
        return super().__new__(cls, 0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, fortran, data = state
        dtype = kind.dtype()
        if not isinstance(data, bytes) or len(data) != math.prod(shape) * dtype.itemsize:
            raise ValueError("a numpy array that is not plain numbers")
        super().__setstate__((1, tuple(shape), dtype, bool(fortran), data))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


class _NewNumpyArray:
    """Calling it gives an empty array, as numpy's own function does."""

    def __new__(cls, kind: type, _shape: tuple[int, ...], _code: bytes) -> Any:
        return kind()


def _named(module: str, name: str, stand_in: type) -> type:
    """``stand_in`` under the name by which a pickle asks for it."""
    return type(name, (stand_in,), {"__module__": module})


STAND_INS = (
    _named("numpy", "dtype", _NumpyType),
    _named("numpy", "ndarray", _NumpyArray),
    *(
        _named(module, name, stand_in)
        for module in ("numpy.core.multiarray", "numpy._core.multiarray")  # numpy 1, numpy 2
        for name, stand_in in (("scalar", _NumpyScalar), ("_reconstruct", _NewNumpyArray))
    ),
    # Before fairseq 0.9 extra_state held the meters of training; fairseq ignores them today.
    _named("fairseq.meters", "AverageMeter", SimpleNamespace),
    _named("fairseq.meters", "TimeMeter", SimpleNamespace),
    _named("fairseq.meters", "StopwatchMeter", SimpleNamespace),
)
