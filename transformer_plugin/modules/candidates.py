"""The likeliest next tokens of each hypothesis, without a pass over all log-probabilities."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from ctypes import addressof, byref, c_float, c_int64, c_void_p
from typing import NamedTuple

import torch
from torch import Tensor

from .compiled import SUFFIXES, address, is_supported, kernels
from .log_normaliser import log_normaliser

_LANES = 16  # numbers that a CPU compares at once


class Candidates(NamedTuple):
    """The k likeliest classes of each row, likeliest first.

    Attributes:
        log_probs: theirs, in nats, with their bias, ``[R, k]``.
        classes: ``[R, k]``.
        asked_log_probs: of the class that was asked for, without bias, ``[R]``.
    """

    log_probs: Tensor
    classes: Tensor
    asked_log_probs: Tensor


def likeliest(logits: Tensor, k: int, biases: Mapping[int, float], asked: Tensor) -> Candidates:
    """The classes to choose from, by log softmax(logits) + bias.

    Args:
        logits: ``[R, V]``; may be changed.
        k: how many; at most V.
        biases: of some classes; minus infinity for what may not be chosen.
        asked: a class of each row, ``[R]``.
    """
    if logits.is_contiguous() and is_supported(logits):
        return _compiled(logits, k, biases, asked)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    log_z = log_normaliser(logits)
    asked_log_probs = logits.gather(1, asked.unsqueeze(1)) - log_z
    for number, bias in biases.items():
        logits[:, number] += bias
    values, classes = largest(logits, k)
    return Candidates(values - log_z, classes, asked_log_probs.squeeze(1))


class _Choice(ctypes.Structure):
    """``struct Choice``."""

    _fields_ = [
        *((name, c_int64) for name in ("rows", "num_classes", "k", "num_biases")),
        ("biased", c_void_p),
        ("biases", c_void_p),
    ]


def _compiled(logits: Tensor, k: int, biases: Mapping[int, float], asked: Tensor) -> Candidates:
    rows, num_classes = logits.shape
    biased, bias = (c_int64 * len(biases))(*biases), (c_float * len(biases))(*biases.values())
    choice = _Choice(rows, num_classes, k, len(biases), addressof(biased), addressof(bias))
    found = Candidates(
        torch.empty(rows, k), torch.empty(rows, k, dtype=torch.int64), torch.empty(rows)
    )
    asked = asked.contiguous()  # held here until the call is over
    getattr(kernels(), f"likeliest_{SUFFIXES[logits.dtype]}")(
        byref(choice), *map(address, (logits, asked, *found))
    )
    return found


def largest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, largest first, as ``torch.topk`` finds them, but in two rounds.

    The k largest classes lie in the k blocks of the largest maxima, so only those are searched.

    Args:
        logits: ``[R, V]``.
        k: how many; at most V.

    Returns:
        Values and classes, ``[R, k]``.
    """
    rows, classes = logits.shape
    blocks = int(math.sqrt(k * classes)) // _LANES * _LANES  # as much work in either round
    if logits.is_cuda or blocks <= 2 * k:
        return logits.topk(k, dim=1)
    block = classes // blocks  # classes, spread evenly, whose maximum stands for them
    whole = block * blocks
    maxima = logits[:, :whole].unflatten(1, (block, blocks)).amax(dim=1)  # [R, blocks]
    chosen = maxima.topk(k, dim=1, sorted=False).indices
    index = (chosen.unsqueeze(2) + torch.arange(0, whole, blocks, device=logits.device)).flatten(1)
    if whole < classes:
        rest = torch.arange(whole, classes, device=logits.device).expand(rows, -1)
        index = torch.cat([index, rest], dim=1)
    values, place = logits.gather(1, index).topk(k, dim=1)
    return values, index.gather(1, place)
