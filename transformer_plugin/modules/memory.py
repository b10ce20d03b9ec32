"""Where the tensors of a run lie."""

from __future__ import annotations

from .operation import operation


@operation
def take_over_tensors() -> bool:
    """Has the tensors of this process laid out well; whether anything was done: no."""
    return False
