"""Activation checkpointing: backward recomputes activations instead of storing them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch
from torch.utils.checkpoint import checkpoint

Result = TypeVar("Result")


def checkpointed(layer: Callable[..., Result]) -> Callable[..., Result]:
    """A function that returns what ``layer`` does. Only its inputs are kept for backward, which
    calls ``layer`` again with the same dropout.

    Chen et al., *Training Deep Nets with Sublinear Memory Cost* (2016), section 3.
    """
    if not torch.is_grad_enabled():
        return layer
    return functools.partial(checkpoint, layer, use_reentrant=False)
