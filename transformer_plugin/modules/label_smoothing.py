"""Label-smoothed cross-entropy, section 5.4 of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .operation import operation


class SmoothedLoss(NamedTuple):
    """Sums over all rows: the smoothed and the plain loss, in nats, and ``num_correct``."""

    loss: Tensor
    nll_loss: Tensor
    num_correct: Tensor


def smoothed_cross_entropy(logits: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The smoothed and the plain loss of each row.

    The gold class has probability 1 - epsilon, each of the other V - 1 epsilon / (V - 1).

    Args:
        logits: ``[N, V]``.
        target: gold classes, ``[N]``.

    Returns:
        Two tensors ``[N]``, in nats, float32 or wider.
    """
    log_p = logits.log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    nll = -log_p.gather(1, target.unsqueeze(1)).squeeze(1)
    share = epsilon / (logits.size(1) - 1)
    return (1 - epsilon - share) * nll - share * log_p.sum(dim=1), nll


def num_correct(logits: Tensor, target: Tensor) -> Tensor:
    """The number of rows of ``logits``, ``[N, V]``, with no class likelier than the gold one."""
    gold_logits = logits.gather(1, target.unsqueeze(1)).squeeze(1)
    return (gold_logits >= logits.amax(dim=1)).sum()


@operation
def smoothed_loss(
    features: Tensor, project: Callable[[Tensor], Tensor], target: Tensor, epsilon: float
) -> SmoothedLoss:
    """The sums of ``smoothed_cross_entropy`` over a decoder's output.

    Args:
        features: ``[N, D]``; idle rows may follow those of ``target``.
        project: the pre-softmax linear map of section 3.4, to ``[N, V]``.
        target: gold classes of the first rows, at most ``[N]``.
        epsilon: mass taken from the gold class.
    """
    logits = project(features[: target.size(0)])
    loss, nll = smoothed_cross_entropy(logits, target, epsilon)
    return SmoothedLoss(loss.sum(), nll.detach().sum(), num_correct(logits, target))
