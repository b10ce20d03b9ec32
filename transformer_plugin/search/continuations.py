"""Live hypotheses with the tokens that may follow them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad


class Continuations(NamedTuple):
    """The candidates of each sentence, live hypotheses plus one token; all ``[b, n]``.

    Attributes:
        log_probs: log-probability of the whole hypothesis.
        parents: the live hypothesis that it continues.
        tokens: the added token.
    """

    log_probs: Tensor
    parents: Tensor
    tokens: Tensor

    @classmethod
    def of(cls, live: Tensor, top: Tensor, classes: Tensor, number: int) -> Continuations:
        """The likeliest continuations of all live hypotheses, ``[b, k]``, among the candidates of
        each, ``[b, k, 2k]``."""
        log_probs = (live.unsqueeze(2) + top).flatten(1)
        tokens = classes.flatten(1)
        missing = (0, number - log_probs.size(1))  # a tiny vocabulary has too few
        if missing[1] > 0:
            log_probs, tokens = pad(log_probs, missing, value=-math.inf), pad(tokens, missing)
        best, index = log_probs.topk(number, dim=1)
        parents = (index // classes.size(2)).clamp_max(live.size(1) - 1)
        return cls(best, parents, tokens.gather(1, index))

    @classmethod
    def drawn(cls, live: Tensor, log_probs: Tensor, tokens: Tensor) -> Continuations:
        """Each live hypothesis, ``[b, j]``, with the tokens drawn for it, ``[b, j, k / j]``."""
        parents = torch.arange(live.size(1), device=live.device).unsqueeze(1).expand_as(tokens)
        totals = live.unsqueeze(2) + log_probs
        return cls(totals.flatten(1), parents.flatten(1), tokens.flatten(1))

    def forced(self, tokens: Tensor, log_probs: Tensor) -> Continuations:
        """Sentences with a forced token, ``[b]``, keep only that token; ``log_probs``, ``[b, k]``,
        are those of the live hypotheses extended by it."""
        is_forced = tokens.ge(0).unsqueeze(1)
        best, parents = log_probs.sort(dim=1, descending=True)
        rest = (0, self.tokens.size(1) - best.size(1))
        return Continuations(
            torch.where(is_forced, pad(best, rest, value=-math.inf), self.log_probs),
            torch.where(is_forced, pad(parents, rest), self.parents),
            torch.where(is_forced, tokens.unsqueeze(1), self.tokens),
        )

    def without(self, ended: Tensor, number: int) -> tuple[Tensor, Tensor, Tensor]:
        """The ``number`` likeliest that have not ended."""
        candidates = ended.size(1)
        order = torch.arange(candidates, device=ended.device) + ended * candidates
        chosen = order.topk(number, dim=1, largest=False).indices
        log_probs = self.log_probs.masked_fill(ended, -math.inf)
        return (
            log_probs.gather(1, chosen),
            self.parents.gather(1, chosen),
            self.tokens.gather(1, chosen),
        )
