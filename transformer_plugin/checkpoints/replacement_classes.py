"""Replacements for the classes named in old checkpoints, so that reading a file calls none of them.

The unpickler looks up classes by module and name, and finds these. They only store values: a forged
numpy type, for example, never reaches numpy's C code.
"""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np


class _NumpyType:
    """Replaces ``numpy.dtype``, which is pickled as ``f8`` or similar."""

    def __init__(self, code: str, *_align_and_copy: bool) -> None:
        self.code = code
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = str(state[1])

    def dtype(self) -> np.dtype[Any]:
        """The numpy type.

        Raises:
            ValueError: it is not the type of a plain number.
        """
        if not re.fullmatch(r"[<>|=][bifu][1248]", f"{self.order}{self.code}"):
            raise ValueError(f"numpy type {self.order}{self.code} is not the type of a number")
        return np.dtype(self.order + self.code)


class _NumpyScalar:
    """Replaces numpy's function ``scalar``: calling it returns the number."""

    def __new__(cls, kind: _NumpyType, data: bytes) -> Any:
        return np.frombuffer(data, kind.dtype(), count=1)[0]


class _NumpyArray(np.ndarray):
    """An array of plain numbers, such as the counts of ``--eval-bleu``.

    It is created empty and filled with checked data. It is saved as numpy's own type.
    """

    def __new__(cls) -> _NumpyArray:
        return super().__new__(cls, 0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, fortran, data = state
        dtype = kind.dtype()
        if not isinstance(data, bytes) or len(data) != math.prod(shape) * dtype.itemsize:
            raise ValueError("a numpy array does not hold plain numbers")
        filled = (1, tuple(shape), dtype, bool(fortran), data)
        super().__setstate__(filled)  # type: ignore[arg-type]  # numpy takes Python's bool

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


class _NewNumpyArray:
    """Replaces numpy's function ``_reconstruct``: calling it returns an empty array."""

    def __new__(cls, kind: type, _shape: tuple[int, ...], _code: bytes) -> Any:
        return kind()


def _named(module: str, name: str, replacement: type) -> type:
    """A subclass of ``replacement`` with the module and name that pickles refer to."""
    return type(name, (replacement,), {"__module__": module})


REPLACEMENTS = (
    _named("numpy", "dtype", _NumpyType),
    _named("numpy", "ndarray", _NumpyArray),
    *(
        _named(module, name, replacement)
        for module in ("numpy.core.multiarray", "numpy._core.multiarray")  # numpy 1, numpy 2
        for name, replacement in (("scalar", _NumpyScalar), ("_reconstruct", _NewNumpyArray))
    ),
    # Before fairseq 0.9 extra_state held meters, which fairseq ignores today.
    _named("fairseq.meters", "AverageMeter", SimpleNamespace),
    _named("fairseq.meters", "TimeMeter", SimpleNamespace),
    _named("fairseq.meters", "StopwatchMeter", SimpleNamespace),
)
