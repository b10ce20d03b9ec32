"""Memory for tensors on a CPU in which freed ones leave no holes that nothing fits into."""

from __future__ import annotations

from pathlib import Path

import torch

from ..modules import compiled

_SOURCE = Path(__file__).with_suffix(".cpp")
_TORCH = Path(torch.__file__).parent


def take_over_tensors() -> bool:
    """Has all tensors made from now on in one range of addresses that the process keeps; whether
    it could."""
    flags = [f"-I{_TORCH / 'include'}", f"-L{_TORCH / 'lib'}", "-lc10"]
    library = compiled.library("tensor_memory", [_SOURCE], flags=flags)
    return library is not None and bool(library.take_over_tensors())
