"""Gradients for ``create_graph=True``: those that compiled code computes have no derivative."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel


def differentiable_gradients(
    plain: Callable[..., Tensor], inputs: tuple[Tensor | None, ...], grad_out: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients of a plain function, as functions of its inputs and of ``grad_out``."""
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        # One input may depend on another; that is no part of the gradients of this function.
        separate = [None if each is None else each.view_as(each) for each in inputs]
        wanted = [each for each in separate if each is not None and each.requires_grad]
        found = torch.autograd.grad(plain(*separate), wanted, grad_out, create_graph=True)
    remaining = iter(found)
    return tuple(
        next(remaining) if each is not None and each.requires_grad else None for each in inputs
    )
