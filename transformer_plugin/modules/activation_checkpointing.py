"""Activation checkpointing: backward recomputes activations instead of storing them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils.checkpoint import checkpoint

Result = TypeVar("Result")


def may_checkpoint(forward: Callable[..., Result]) -> Callable[..., Result]:
    """Wraps a layer's ``forward``. If the layer's ``checkpoint_activations`` is set, only its
    inputs are kept for backward, which runs ``forward`` again with the same dropout.

    Chen et al., *Training Deep Nets with Sublinear Memory Cost* (2016), section 3.
    """

    @functools.wraps(forward)
    def run(layer: Any, *inputs: Any, **options: Any) -> Result:
        if not (layer.checkpoint_activations and torch.is_grad_enabled()):
            return forward(layer, *inputs, **options)
        result: Result = checkpoint(forward, layer, *inputs, use_reentrant=False, **options)
        return result

    return run
