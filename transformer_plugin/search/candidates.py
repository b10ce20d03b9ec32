"""The k likeliest classes of each row of logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from ..modules.operation import operation


class Candidates(NamedTuple):
    """The k likeliest classes of each row, likeliest first.

    Attributes:
        log_probs: their log-probabilities with bias, in nats, ``[R, k]``.
        classes: ``[R, k]``.
        asked_log_probs: log-probability of the requested class, without bias, ``[R]``.
    """

    log_probs: Tensor
    classes: Tensor
    asked_log_probs: Tensor


def log_probabilities(logits: Tensor) -> Tensor:
    """log softmax, ``[R, V]``, in float32 or wider."""
    return logits.log_softmax(dim=1, dtype=torch.promote_types(logits.dtype, torch.float32))


def add_biases(log_p: Tensor, biases: Mapping[int, float], asked: Tensor) -> Tensor:
    """Adds the biases to ``log_p``, ``[R, V]``; returns the requested class's, ``[R]``, without."""
    asked_log_probs = log_p.gather(1, asked.unsqueeze(1)).squeeze(1)
    for number, bias in biases.items():
        log_p[:, number] += bias
    return asked_log_probs


@operation
def likeliest(logits: Tensor, k: int, biases: Mapping[int, float], asked: Tensor) -> Candidates:
    """The k best classes by log softmax(logits) + bias.

    Args:
        logits: ``[R, V]``; may be overwritten.
        k: at most V.
        biases: bias of some classes; minus infinity excludes a class.
        asked: one requested class for each row, ``[R]``.
    """
    log_p = log_probabilities(logits)
    asked_log_probs = add_biases(log_p, biases, asked)
    return Candidates(*log_p.topk(k, dim=1), asked_log_probs)
