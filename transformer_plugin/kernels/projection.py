"""The pre-softmax linear map behind what ``smoothed_loss`` and a search are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from ..modules.decoder import Decoder
from ..modules.operation import is_exactly


def plain_projection(project: Callable[..., Any]) -> nn.Linear | None:
    """The linear map without bias that ``project`` is, or whose result ``Decoder.output_layer``
    gives as it is; None where it is anything else."""
    owner = getattr(project, "__self__", None)
    found: Any = project
    if isinstance(owner, Decoder) and getattr(project, "__func__", None) is Decoder.output_layer:
        found = owner.output_projection
    is_plain = isinstance(found, nn.Linear) and is_exactly(found, nn.Linear)
    return found if is_plain and found.bias is None else None
