"""The next tokens of each hypothesis: the likeliest, or drawn at random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .candidates import add_biases, likeliest, log_probabilities
from .finished_hypotheses import LengthPenalty
from .sampling import Sampling
from .scorers import Scorer


@dataclass(frozen=True)
class Rules:
    """The settings of a search.

    Attributes:
        beam_size: hypotheses kept for each sentence, k.
        length_penalty: lp of a length with end of sentence.
        stop_rule: see ``FinishedHypotheses``.
        min_length: minimum hypothesis length without end of sentence.
        unknown_penalty: subtracted from the log-probability of the unknown word.
        eos, unk: the special symbols.
        pad: the padding of prefixes, which is never chosen; -1 if the vocabulary has none.
        sampling: how to draw k random hypotheses; None = beam search. Sampling needs the stop rule
            ``first-finished``, with which every draw ends.

    Raises:
        ValueError: there is no hypothesis, or ``pad`` is ``eos``, which no hypothesis could end
            with.
    """

    beam_size: int
    length_penalty: LengthPenalty
    stop_rule: str
    eos: int
    pad: int
    unk: int
    min_length: int = 1
    unknown_penalty: float = 0.0
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.beam_size < 1:
            raise ValueError(f"beam_size is {self.beam_size}: expected at least 1")
        if self.pad == self.eos:
            raise ValueError("pad is eos: give another symbol, or -1 if the vocabulary has none")

    def biases(self, step: int) -> dict[int, float]:
        """Biases of the log-probabilities of some tokens at a step, counted from 0."""
        biases = {} if self.pad < 0 else {self.pad: -math.inf}
        if self.unknown_penalty:
            biases[self.unk] = -self.unknown_penalty
        if step < self.min_length:
            biases[self.eos] = -math.inf
        return biases

    def unknown_penalties(self, tokens: Tensor) -> Tensor:
        """The penalty to subtract from the log-probability of each forced token. An infinite one is
        not applied: it would leave no hypothesis."""
        penalties = torch.zeros_like(tokens, dtype=torch.float32)
        if math.isinf(self.unknown_penalty):
            return penalties
        return penalties.masked_fill(tokens.eq(self.unk), self.unknown_penalty)


def likeliest_tokens(
    rules: Rules, scorer: Scorer, tokens: Tensor, step: int, forced: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest successors of each of ``tokens``, ``[B, k]``.

    Args:
        step: from 0.
        forced: the token that each sentence must take, ``[B]``, or -1; None = no token is forced.

    Returns:
        Log-probabilities, in float32, and classes of at most 2k successors, ``[B, k, 2k]``, and the
        log-probability of the forced token, ``[B, k]``; undefined if no token is forced.
    """
    asked = _asked(tokens, forced)
    biases = rules.biases(step)
    parts = []
    for rows, scores, total in scorer.step(tokens):
        k = min(2 * rules.beam_size, scores.size(1))
        found, classes, forced_log_p = likeliest(scores, k, biases, asked[rows])
        if total is not None:
            found, forced_log_p = found + total.unsqueeze(1), forced_log_p + total
        parts.append((found, classes, forced_log_p))
    top, classes, forced_log_p = (torch.cat(part) for part in zip(*parts, strict=True))
    if forced is not None:
        forced_log_p -= rules.unknown_penalties(asked)
    shape = (*tokens.shape, -1)
    return top.view(shape).float(), classes.view(shape), forced_log_p.view(tokens.shape).float()


def drawn_tokens(
    rules: Rules, scorer: Scorer, tokens: Tensor, step: int, forced: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Draws a successor of each of ``tokens``, ``[B, j]``; see ``likeliest_tokens``.

    Returns:
        Log-probabilities and classes, ``[B, j, k / j]``: k for the empty hypothesis, then one for
        each hypothesis. A forced token replaces the draw.
    """
    assert rules.sampling is not None
    asked = _asked(tokens, forced)
    number = rules.beam_size // tokens.size(1)
    parts = []
    for rows, scores, total in scorer.step(tokens):
        log_p = log_probabilities(scores)
        if total is not None:
            log_p += total.unsqueeze(1)
        forced_log_p = add_biases(log_p, rules.biases(step), asked[rows]).unsqueeze(1)
        parts.append((*rules.sampling.draw(log_p, number), forced_log_p))
    log_probs, classes, forced_log_p = (torch.cat(part) for part in zip(*parts, strict=True))
    if forced is not None:
        is_forced = forced.ge(0).repeat_interleave(tokens.size(1)).unsqueeze(1)
        forced_log_p -= rules.unknown_penalties(asked).unsqueeze(1)
        log_probs = torch.where(is_forced, forced_log_p, log_probs)
        classes = torch.where(is_forced, asked.unsqueeze(1), classes)
    shape = (*tokens.shape, number)
    return log_probs.view(shape).float(), classes.view(shape)


def _asked(tokens: Tensor, forced: Tensor | None) -> Tensor:
    """The forced token of each row, ``[B * k]``; arbitrary if none is forced."""
    if forced is None:
        return torch.zeros(tokens.numel(), dtype=torch.int64, device=tokens.device)
    return forced.clamp_min(0).repeat_interleave(tokens.size(1))
