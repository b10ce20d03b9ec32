"""Activation checkpointing: activations that are computed again when backward needs them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils.checkpoint import checkpoint

Result = TypeVar("Result")


def may_checkpoint(forward: Callable[..., Result]) -> Callable[..., Result]:
    """A layer's ``forward`` that keeps no more than its inputs for backward, and runs again there
    with the same dropout, where the layer's ``checkpoint_activations`` says so.

    Chen et al., *Training Deep Nets with Sublinear Memory Cost* (2016), section 3.
    """

    @functools.wraps(forward)
    def run(layer: Any, *inputs: Any, **options: Any) -> Result:
        if not (layer.checkpoint_activations and torch.is_grad_enabled()):
            return forward(layer, *inputs, **options)
        result: Result = checkpoint(forward, layer, *inputs, use_reentrant=False, **options)
        return result

    return run
