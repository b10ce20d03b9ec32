"""The likeliest next tokens in two rounds on a GPU, where ``topk`` reads each row several times."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ...search.candidates import Candidates, add_biases, likeliest, log_probabilities
from ..registry import kernel

WIDTH = 64  # classes of a block
_FEWEST_CLASSES = 8192  # below, one round is as fast


def _supports(logits: Tensor, k: int, biases: Mapping[int, float], asked: Tensor) -> bool:
    return logits.is_cuda and logits.size(1) >= max(_FEWEST_CLASSES, k * WIDTH)


@kernel(likeliest, _supports)
def likeliest_in_two_rounds(
    logits: Tensor, k: int, biases: Mapping[int, float], asked: Tensor
) -> Candidates:
    """See ``likeliest``. The first round chooses the k blocks with the largest maxima, which have
    the k likeliest classes; the second chooses among their classes."""
    log_p = log_probabilities(logits)
    asked_log_probs = add_biases(log_p, biases, asked)
    num_blocks = log_p.size(1) // WIDTH
    blocks = log_p[:, : num_blocks * WIDTH].unflatten(1, (num_blocks, WIDTH))
    rest = torch.arange(num_blocks * WIDTH, log_p.size(1), device=logits.device)
    chosen = blocks.amax(2).topk(k, dim=1).indices.unsqueeze(2) * WIDTH
    classes = (chosen + torch.arange(WIDTH, device=logits.device)).flatten(1)
    classes = torch.cat([classes, rest.expand(classes.size(0), -1)], dim=1)
    log_probs, places = log_p.gather(1, classes).topk(k, dim=1)
    return Candidates(log_probs, classes.gather(1, places), asked_log_probs)
