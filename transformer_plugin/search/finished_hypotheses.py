"""Finished hypotheses and the stop rules of a search."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

LengthPenalty = Callable[[float], float]


class FinishedHypotheses:
    """Up to k finished hypotheses for each of B sentences.

    An entry has its score, the step at which it ended and the live hypothesis that it continued.

    Args:
        max_lengths: maximum hypothesis length of each, without end of sentence, ``[B]``.
        beam_size: k.
        length_penalty: lp of a length with end of sentence.
        stop_rule: ``bound``: a sentence is done when no live hypothesis can still beat the worst
            of k finished ones (tensor2tensor); ``first-finished``: when k have ended (fairseq).

    Raises:
        ValueError: an unknown stop rule.
    """

    def __init__(
        self,
        max_lengths: Tensor,
        beam_size: int,
        length_penalty: LengthPenalty,
        stop_rule: str,
    ) -> None:
        if stop_rule not in ("bound", "first-finished"):
            raise ValueError(f"unknown stop rule '{stop_rule}': expected bound or first-finished")
        shape, device = (max_lengths.size(0), beam_size), max_lengths.device
        self.max_lengths = max_lengths
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.by_bound = stop_rule == "bound"
        longest = [n + 1 for n in max_lengths.tolist()]
        limits = sorted(set(longest))
        with torch.device("cpu"):
            lengths = torch.arange(1, limits[-1] + 1)
            penalties = torch.tensor([length_penalty(n) for n in lengths.tolist()]).float()
            possible = penalties.where(lengths <= torch.tensor(limits).unsqueeze(1), -math.inf)
        largest = possible.flip(1).cummax(1).values.flip(1)  # from each length up to each limit
        self.largest_penalties = largest.to(device)
        self.limit = torch.tensor([limits.index(n) for n in longest], device=device)
        self.scores = torch.full(shape, -math.inf, dtype=torch.float32, device=device)
        self.log_probs = torch.full(shape, -math.inf, dtype=torch.float32, device=device)
        self.steps = torch.zeros(shape, dtype=torch.int64, device=device)
        self.parents = torch.zeros(shape, dtype=torch.int64, device=device)

    def add(
        self, rows: Tensor, step: int, ended: Tensor, log_probs: Tensor, parents: Tensor
    ) -> None:
        """Adds candidates that end at ``step`` (from 0).

        Args:
            rows: sentence numbers, ``[b]``.
            ended: whether each candidate ends, ``[b, 2k]``, likeliest first.
            log_probs: their log-probabilities, ``[b, 2k]``.
            parents: the live hypothesis that each continues, ``[b, 2k]``.
        """
        scores = log_probs / self.length_penalty(step + 1)
        if self.by_bound:
            kept = scores.masked_fill(~ended, -math.inf)
        else:
            # fairseq considers only the k likeliest candidates and never replaces an entry.
            ended = ended & (torch.arange(ended.size(1), device=ended.device) < self.beam_size)
            room = self.beam_size - self.scores[rows].isfinite().sum(dim=1, keepdim=True)
            kept = scores.masked_fill(~ended | (ended.cumsum(dim=1) > room), -math.inf)
        pool = torch.cat([self.scores[rows], kept], dim=1)
        best, index = pool.topk(self.beam_size, dim=1)
        self.scores[rows] = best
        for entries, new in (
            (self.log_probs, log_probs),
            (self.steps, torch.full_like(parents, step)),
            (self.parents, parents),
        ):
            entries[rows] = torch.cat([entries[rows], new], dim=1).gather(1, index)

    def done(self, rows: Tensor, step: int, live: Tensor) -> Tensor:
        """Whether each sentence needs no further step, ``[b]``.

        Args:
            rows: sentence numbers, ``[b]``.
            step: the step just finished, from 0.
            live: log-probabilities of the live hypotheses, ``[b, k]``.
        """
        worst = self.scores[rows].amin(dim=1)
        best_live = live.amax(dim=1)
        out_of_steps = (step >= self.max_lengths[rows]) | best_live.isneginf()
        if not self.by_bound:
            return worst.isfinite() | out_of_steps
        # A log-probability can only fall, so the best possible score is the present
        # log-probability divided by the largest penalty still possible.
        length = min(step + 2, self.largest_penalties.size(1))
        penalty = self.largest_penalties[self.limit[rows], length - 1]
        return (worst >= best_live / penalty) & worst.isfinite() | out_of_steps
