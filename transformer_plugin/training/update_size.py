"""The mean number of tokens in an update, compared with the paper's (section 5.1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..deviations import is_paper_model
from ..paper_tables import BATCH_TOKENS
from ..throughput import COUNTED, batch_flops

logger = logging.getLogger(__name__)
TOLERANCE = 0.1  # share of the paper's size
_CHUNK = 1_000_000  # sentence pairs at a time, to limit memory


@dataclass(frozen=True)
class UpdateSize:
    """Number of updates in an epoch, and their mean tokens and FLOPs."""

    updates: int
    source_tokens: float
    target_tokens: float
    flops: float

    def __str__(self) -> str:
        return (
            f"an update holds {self.source_tokens:,.0f} source and {self.target_tokens:,.0f}"
            f" target tokens on average (paper: about {BATCH_TOKENS:,} each) and takes"
            f" {self.flops:.6g} FLOPs; {self.updates:,} updates an epoch"
        )

    @property
    def matches_paper(self) -> bool:
        """Whether both sides are within ``TOLERANCE`` of the paper's size."""
        sides = (self.source_tokens, self.target_tokens)
        return all(abs(tokens / BATCH_TOKENS - 1) <= TOLERANCE for tokens in sides)


def update_size(
    model: nn.Module,
    batches: Sequence[Sequence[int]],
    source: np.ndarray,
    target: np.ndarray,
    batches_per_update: int,
) -> UpdateSize:
    """The mean update of an epoch, counting end-of-sentence symbols.

    Args:
        model: one whose operations ``throughput`` counts.
        batches: indices of the sentence pairs in each batch.
        source: source length of every pair of the data, in tokens, ``[N]``.
        target: target length, ``[N]``.
        batches_per_update: number of batches in an update, over all processes.
    """
    updates = -(-len(batches) // batches_per_update)
    pairs = np.concatenate([np.asarray(batch) for batch in batches])
    flops = 0.0
    for first in range(0, len(pairs), _CHUNK):
        part = pairs[first : first + _CHUNK]
        lengths = (torch.from_numpy(np.asarray(side)[part]) for side in (source, target))
        flops += batch_flops(model, *lengths).item()
    source_tokens, target_tokens = (
        float(np.asarray(side)[pairs].sum()) / updates for side in (source, target)
    )
    return UpdateSize(updates, source_tokens, target_tokens, flops / updates)


def log_mean_update(model: nn.Module, batches: Any, batches_per_update: int, arch: str) -> None:
    """Logs the size of the updates of an epoch of sentence pairs, if the model's work is counted.

    Args:
        batches: fairseq's iterator over the epoch.
    """
    data = batches.dataset
    if isinstance(model, COUNTED) and getattr(data, "tgt_sizes", None) is not None:
        sizes = data.src_sizes, data.tgt_sizes
        log_update_size(
            update_size(model, batches.frozen_batches, *sizes, batches_per_update), arch
        )


def log_update_size(size: UpdateSize, arch: str) -> None:
    """Logs it; warns if a model of the paper is not trained with the paper's batch size."""
    if is_paper_model(arch) and not size.matches_paper:
        share = size.target_tokens / BATCH_TOKENS
        logger.warning(
            "%s. That is %.2f times the paper's batch: change --update-freq, or UPDATE_TOKENS of"
            " a recipe",
            size,
            share,
        )
    else:
        logger.info("%s", size)
