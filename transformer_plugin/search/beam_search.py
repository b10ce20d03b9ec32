"""Beam search over a model that decodes step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..modules.operation import operation
from .continuations import Continuations
from .finished_hypotheses import FinishedHypotheses
from .next_tokens import Rules, drawn_tokens, likeliest_tokens
from .scorers import Scorer


@operation
def worth_shrinking(num_live: int, sentences: Tensor) -> bool:
    """Whether to shrink a batch of ``sentences`` when only ``num_live`` are still searched."""
    return num_live < 0.95 * sentences.numel()


@operation
def may_have_ended(ended: Tensor) -> bool:
    """Whether any of the candidates, ``[b, 2k]``, has ended; may be True if none has."""
    return bool(ended.any())


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    Attributes:
        tokens: including end of sentence, ``[T]``.
        score: log-probability divided by the length penalty.
        log_probs: log-probability of each token, ``[T]``, in nats.
    """

    tokens: Tensor
    score: Tensor
    log_probs: Tensor


@torch.no_grad()
def beam_search(
    scorer: Scorer,
    max_lengths: Tensor,
    rules: Rules,
    prefix: Tensor | None = None,
    first_token: int | None = None,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each sentence, best first. Their scores have no gradient: to train
    with them, compute the log-probabilities of the hypotheses with the model.

    Args:
        scorer: a model at the start of B sentences.
        max_lengths: maximum hypothesis length of each, without end of sentence, ``[B]``.
        prefix: tokens that each hypothesis must begin with, ``[B, P]``, padded on the right.
        first_token: the decoder's first input token; end of sentence by default.

    Returns:
        At most k hypotheses for each sentence; fewer only if no more exist.
    """
    if max_lengths.size(0) == 0:
        return []
    device, beam_size = max_lengths.device, rules.beam_size
    batch_size, steps = max_lengths.size(0), int(max_lengths.max()) + 1
    shortest = int(max_lengths.min())
    finished = FinishedHypotheses(max_lengths, beam_size, rules.length_penalty, rules.stop_rule)
    rows = torch.arange(batch_size, device=device)  # the sentences still being searched
    # One empty hypothesis of each; k after the first step.
    live = torch.zeros(batch_size, 1, dtype=torch.float32, device=device)
    # Deviation: the authors' release starts from a vector of zeros, not from a learned symbol.
    first = rules.eos if first_token is None else first_token
    tokens = torch.full((batch_size, 1), first, device=device)
    history = _History(batch_size, beam_size, device)

    for step in range(steps):
        forced = None
        if prefix is not None or step >= shortest:
            forced = _forced_tokens(rules, step, max_lengths, prefix)
        if rules.sampling is not None:
            continuations = Continuations.drawn(
                live, *drawn_tokens(rules, scorer, tokens, step, forced)
            )
        else:
            top, classes, forced_log_p = likeliest_tokens(rules, scorer, tokens, step, forced)
            continuations = Continuations.of(live, top, classes, 2 * beam_size)
            if forced is not None:
                continuations = continuations.forced(forced, live + forced_log_p)
        ended = continuations.tokens.eq(rules.eos) & continuations.log_probs.isfinite()
        if may_have_ended(ended):
            finished.add(rows, step, ended, continuations.log_probs, continuations.parents)
            live, parents, tokens = continuations.without(ended, beam_size)
        else:
            live, parents, tokens = (each[:, :beam_size] for each in continuations)
        history.record(rows, tokens, parents, live)
        if beam_size > 1:  # a single hypothesis needs no reordering
            scorer.reorder(parents)

        over = finished.done(rows, step, live)
        num_live = rows.numel() - int(over.sum())
        if num_live == 0:
            break
        live = live.masked_fill(over.unsqueeze(1), -math.inf)
        if rules.sampling is None:
            should_shrink = worth_shrinking(num_live, rows)
        else:  # tokens are drawn only for the sentences still being searched, as in fairseq
            should_shrink = num_live < rows.numel()
        if should_shrink:
            remaining = (~over).nonzero().squeeze(1)
            scorer.select(remaining)
            rows, live, tokens = rows[remaining], live[remaining], tokens[remaining]
            max_lengths = max_lengths[remaining]
            prefix = None if prefix is None else prefix[remaining]
    return history.hypotheses(finished, rules.eos)


def _forced_tokens(rules: Rules, step: int, max_lengths: Tensor, prefix: Tensor | None) -> Tensor:
    """The token that each sentence must take at this step, ``[b]``; -1 if it may choose.

    Deviation: a hypothesis is ended at its maximum length, as in fairseq; the authors' release
    drops it if any other has ended.
    """
    forced = torch.full_like(max_lengths, -1, dtype=torch.int64)
    if prefix is not None and step < prefix.size(1):
        forced = prefix[:, step].masked_fill(prefix[:, step].eq(rules.pad), -1)
    return forced.masked_fill(max_lengths.le(step), rules.eos)


class _History:
    """Tokens, parents and log-probabilities of the live hypotheses after each step."""

    def __init__(self, batch_size: int, beam_size: int, device: torch.device) -> None:
        self.shape = (batch_size, beam_size)
        self.tokens: list[Tensor] = []  # [B, k] each
        self.parents: list[Tensor] = []
        self.log_probs: list[Tensor] = []
        self.device = device

    def record(self, rows: Tensor, tokens: Tensor, parents: Tensor, log_probs: Tensor) -> None:
        """Records one step of the sentences ``rows``."""
        for steps, values in (
            (self.tokens, tokens),
            (self.parents, parents),
            (self.log_probs, log_probs),
        ):
            if rows.size(0) < self.shape[0]:  # entries of the other sentences are unused
                whole = torch.zeros(self.shape, dtype=values.dtype, device=self.device)
                values = whole.index_copy_(0, rows, values)
            steps.append(values)

    def hypotheses(self, finished: FinishedHypotheses, eos: int) -> list[list[Hypothesis]]:
        """Follows each finished hypothesis back to its first token."""
        steps = len(self.tokens)
        ends, beam = finished.steps, finished.parents
        inside = ends.unsqueeze(2) > torch.arange(steps, device=self.device)  # [B, k, T]
        # Hypothesis `beam` was live after a step; its parent is the hypothesis that it extended.
        beams: list[Tensor] = []
        for step in reversed(range(steps)):
            beams.append(beam)
            beam = torch.where(inside[..., step], self.parents[step].gather(1, beam), beam)
        after = torch.stack(beams[::-1], dim=2)
        tokens = torch.stack(self.tokens, dim=2).gather(1, after).where(inside, eos)
        totals = torch.stack(self.log_probs, dim=2).gather(1, after)
        totals = totals.where(inside, finished.log_probs.unsqueeze(2))
        log_probs = totals.diff(dim=2, prepend=torch.zeros_like(totals[..., :1]))
        scores = finished.scores.cpu()
        lengths = torch.where(scores.isfinite(), ends.cpu() + 1, 0)
        inside = torch.arange(steps, device="cpu") < lengths.unsqueeze(2)
        flat = lengths.flatten().tolist()
        with torch.inference_mode(False):  # inference tensors cannot be changed later
            parts = zip(
                scores.flatten().clone().unbind(),
                *(x.cpu()[inside].split(flat) for x in (tokens, log_probs)),
                strict=True,
            )
        hypotheses = [Hypothesis(t, score, p) for score, t, p in parts]
        return [
            [h for h in hypotheses[i : i + self.shape[1]] if h.tokens.numel()]
            for i in range(0, len(hypotheses), self.shape[1])
        ]
