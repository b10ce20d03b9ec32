"""The likeliest next tokens of each hypothesis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from .finished import LengthPenalty
from .modules.candidates import largest

_TINY = 1e-38  # no log-probability is taken to be below log(1e-38) = -87.5


class Scorer(Protocol):
    """What beam search asks of a model, or of several together."""

    def step(self, tokens: Tensor, position: int) -> Iterator[tuple[slice, Tensor]]:
        """What follows each of ``tokens``, ``[B, k]``: some of the B * k rows, and their
        log-probabilities up to a constant a row, ``[r, V]``, which the caller may change."""

    def follow(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences alone, ``[b]``."""


@dataclass(frozen=True)
class Rules:
    """How to search; defaults are section 6.1's.

    Attributes:
        beam_size: hypotheses kept of each sentence, k.
        length_penalty: lp of a length, end of sentence counted.
        stop_rule: see ``Finished``.
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


class NextTokens:
    """Finds them among the scores of a model, some rows at a time.

    Args:
        rules: what may be chosen, and of how many.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._p = torch.empty(0)  # kept, as fresh memory costs page faults

    def likeliest(
        self, scorer: Scorer, tokens: Tensor, step: int, forced: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What may follow each of ``tokens``, ``[B, k]``.

        Args:
            step: from 0.
            forced: the token that each sentence must take, ``[B]``, or -1.

        Returns:
            Log-probabilities and classes of at most 2k, ``[B, k, 2k]``, and the log-probability
            of the forced token, ``[B, k]``, which means nothing where none is forced.
        """
        asked = forced.clamp_min(0).repeat_interleave(tokens.size(1)).unsqueeze(1)  # [B * k, 1]
        parts = []
        for rows, scores in scorer.step(tokens, step):
            p = self._softmax(scores)
            forced_score = scores.gather(1, asked[rows])
            self._forbid(scores, step)
            top, classes = largest(scores, min(2 * self.rules.beam_size, scores.size(1)))
            # log p = score - log Z for each class, so the likeliest one tells log Z.
            reference = classes[:, :1]
            score = top[:, :1] + self.rules.unknown_penalty * reference.eq(self.rules.unk)
            log_z = score - p.gather(1, reference).clamp_min(_TINY).log()
            parts.append((top - log_z, classes, forced_score - log_z))
        top, classes, forced_log_p = (torch.cat(part) for part in zip(*parts, strict=True))
        shape = (*tokens.shape, -1)
        return top.view(shape), classes.view(shape), forced_log_p.view(tokens.shape)

    def _softmax(self, scores: Tensor) -> Tensor:
        if self._p.numel() < scores.numel():
            self._p = torch.empty_like(scores)
        return torch.softmax(scores, dim=1, out=self._p[: scores.size(0)])

    def _forbid(self, scores: Tensor, step: int) -> None:
        """Takes out, in place, what no hypothesis may choose."""
        scores[:, self.rules.pad] = -math.inf
        if self.rules.unknown_penalty:
            scores[:, self.rules.unk] -= self.rules.unknown_penalty
        if step < self.rules.min_length:
            scores[:, self.rules.eos] = -math.inf
