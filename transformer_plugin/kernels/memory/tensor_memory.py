"""Memory for tensors on a CPU in which freed ones leave no holes that nothing fits into."""

from __future__ import annotations

from pathlib import Path

import torch

from ...modules.memory import take_over_tensors
from ..cpu import library
from ..registry import kernel

_SOURCE = Path(__file__).with_suffix(".cpp")
_TORCH = Path(torch.__file__).parent


def _supports() -> bool:
    return True


@kernel(take_over_tensors, _supports)
def take_over_tensors_at_once() -> bool:
    """Has all tensors made from now on in one range of addresses that the process keeps; whether
    it could."""
    flags = [f"-I{_TORCH / 'include'}", f"-L{_TORCH / 'lib'}", "-lc10"]
    memory = library.library("tensor_memory", [_SOURCE], flags=flags)
    return memory is not None and bool(memory.take_over_tensors())
