"""Adam with a fused update: one pass over each weight. It is torch's, or NVIDIA apex's on a GPU if
that is installed. On a CPU ``cpu/adam.py`` comes first, where it is compiled and supports the
tensors; without either a training step takes 1.02 to 1.03 times as long (``bench/kernels.py``)."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from ..modules.adam import AdamOptions, AdamTensors, adam_update
from .plain_modules import are_alike
from .registry import kernel

# Weights updated at once, whose gradients are converted first. On a CPU they fit into the inner
# caches; on a GPU fewer launches count, and all together would be as large as the model.
_CPU_ELEMENTS = 1 << 20
_GPU_ELEMENTS = 1 << 24


def _supports(parameters: list[AdamTensors], options: AdamOptions) -> bool:
    return all(
        each.weight.dtype in (torch.float32, torch.float64)
        and each.weight.device.type in ("cpu", "cuda")
        and each.mean.dtype == each.square.dtype == each.weight.dtype
        and are_alike(*each)
        for each in parameters
    )


@kernel(adam_update, _supports)
def fused_adam_update(parameters: list[AdamTensors], options: AdamOptions) -> None:
    """See ``adam_update``.

    Both divide by sqrt(v / (1 - beta2^t)) + eps. Passing eps / sqrt(1 - beta2^t) as eps gives the
    same update.
    """
    options = options._replace(eps=options.eps / math.sqrt(1 - options.beta2**options.step))
    for part in _parts(parameters):
        weights = [each.weight for each in part]
        gradients = _in_type_of_weights(part, options.factor)
        lists = [gradients, weights, [each.mean for each in part], [each.square for each in part]]
        update = _update_by_apex if _takes_apex(weights[0]) else _update_by_torch
        update(lists, options)
        for weight in weights:  # fused updates do not do this themselves
            torch.autograd.graph.increment_version(weight)
        copies = [(each.rounded, each.weight) for each in part if each.rounded is not None]
        if copies:
            rounded, exact = map(list, zip(*copies, strict=True))
            torch._foreach_copy_(rounded, exact)


def _update_by_torch(lists: list[list[Tensor]], options: AdamOptions) -> None:
    gradients, weights, means, squares = lists
    adamw(
        weights,
        gradients,
        means,
        squares,
        [],
        list(torch.full((len(weights),), options.step - 1.0, device=weights[0].device)),
        fused=True,
        amsgrad=False,
        beta1=options.beta1,
        beta2=options.beta2,
        lr=options.lr,
        weight_decay=options.weight_decay,
        eps=options.eps,
        maximize=False,
    )


def _update_by_apex(lists: list[list[Tensor]], options: AdamOptions) -> None:
    """By NVIDIA apex's kernel, which corrects the bias as torch's does."""
    from amp_C import multi_tensor_adam
    from apex.multi_tensor_apply import multi_tensor_applier

    decoupled, bias_correction = 1, 1
    multi_tensor_applier(
        multi_tensor_adam,
        torch.zeros(1, dtype=torch.int32, device=lists[0][0].device),  # an overflow flag
        lists,
        *(options.lr, options.beta1, options.beta2, options.eps, options.step),
        *(decoupled, bias_correction, options.weight_decay),
    )


def _takes_apex(weight: Tensor) -> bool:
    return weight.is_cuda and weight.dtype == torch.float32 and apex_is_installed()


@functools.cache
def apex_is_installed() -> bool:
    """Whether NVIDIA apex is there, with its kernels; PyPI's package ``apex`` is another one."""
    return all(map(importlib.util.find_spec, ("amp_C", "apex")))


def _parts(parameters: list[AdamTensors]) -> Iterator[list[AdamTensors]]:
    """Groups of parameters, or of parts of them, with one device and type and of limited size."""
    part: list[AdamTensors] = []
    elements, kind_of_part = 0, None
    for each in parameters:
        limit = _CPU_ELEMENTS if each.weight.device.type == "cpu" else _GPU_ELEMENTS
        kind = each.weight.device, each.weight.dtype
        views = (tensor.view(-1).split(limit) for tensor in each if tensor is not None)
        pieces = [each] if each.weight.numel() <= limit else map(AdamTensors, *views)
        for piece in pieces:
            size = piece.weight.numel()
            if part and (kind != kind_of_part or elements + size > limit):
                yield part
                part, elements = [], 0
            part.append(piece)
            elements, kind_of_part = elements + size, kind
    if part:
        yield part


def _in_type_of_weights(part: list[AdamTensors], factor: float | Tensor) -> list[Tensor]:
    """The gradients multiplied by ``factor``, in the type of the weights."""
    is_one = isinstance(factor, float) and factor == 1
    if is_one and all(each.gradient.dtype == each.weight.dtype for each in part):
        return [each.gradient for each in part]
    exact = [torch.empty_like(each.weight) for each in part]
    torch._foreach_copy_(exact, [each.gradient for each in part])
    if isinstance(factor, Tensor):  # with another type, each tensor would be multiplied on its own
        factor = factor.to(exact[0].dtype)
    torch._foreach_mul_(exact, factor)
    return exact
