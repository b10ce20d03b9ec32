"""The likeliest next tokens of each hypothesis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from .candidates import likeliest
from .finished_hypotheses import LengthPenalty


class Scorer(Protocol):
    """What beam search asks of a model, or of several together."""

    def step(self, tokens: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """What follows each of ``tokens``, ``[B, k]``: some of the B * k rows, and their
        log-probabilities up to a constant a row, ``[r, V]``, which the caller may change."""

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences alone, ``[b]``."""


@dataclass(frozen=True)
class Rules:
    """How to search; defaults are section 6.1's.

    Attributes:
        beam_size: hypotheses kept of each sentence, k.
        length_penalty: lp of a length, end of sentence counted.
        stop_rule: see ``FinishedHypotheses``.
        min_length: shortest hypothesis, end of sentence not counted.
        unknown_penalty: taken from the log-probability of the unknown word.
        eos, pad, unk: the special symbols.
    """

    beam_size: int
    length_penalty: LengthPenalty
    stop_rule: str
    eos: int
    pad: int
    unk: int
    min_length: int = 1
    unknown_penalty: float = 0.0


def likeliest_tokens(
    rules: Rules, scorer: Scorer, tokens: Tensor, step: int, forced: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """What may follow each of ``tokens``, ``[B, k]``.

    Args:
        step: from 0.
        forced: the token that each sentence must take, ``[B]``, or -1; None where all may choose.

    Returns:
        Log-probabilities and classes of at most 2k, ``[B, k, 2k]``, and the log-probability
        of the forced token, ``[B, k]``, which means nothing where none is forced.
    """
    if forced is None:
        asked = torch.zeros(tokens.numel(), dtype=torch.int64, device=tokens.device)
    else:
        asked = forced.clamp_min(0).repeat_interleave(tokens.size(1))  # [B * k]
    biases = {rules.pad: -math.inf}
    if rules.unknown_penalty:
        biases[rules.unk] = -rules.unknown_penalty
    if step < rules.min_length:
        biases[rules.eos] = -math.inf
    parts = [
        likeliest(scores, min(2 * rules.beam_size, scores.size(1)), biases, asked[rows])
        for rows, scores in scorer.step(tokens)
    ]
    top, classes, forced_log_p = (torch.cat(part) for part in zip(*parts, strict=True))
    shape = (*tokens.shape, -1)
    return top.view(shape), classes.view(shape), forced_log_p.view(tokens.shape)
