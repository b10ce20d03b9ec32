"""Tokens drawn at random from a model's distribution."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """Which tokens may be drawn; all by default.

    Attributes:
        top_k: draw from the k likeliest; ignored if ``top_p`` is given, as in fairseq.
        top_p: draw from the fewest whose probabilities add up to p (Holtzman et al. 2020).
    """

    top_k: int | None = None
    top_p: float | None = None

    def draw(self, log_p: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Draws from each row of log-probabilities, ``[R, V]``, with replacement.

        Random numbers are used as in fairseq, so the same seed gives the same draws.

        Returns:
            Log-probabilities and classes of the draws, ``[R, number]``.
        """
        classes: Tensor | None = None
        if self.top_p is not None:
            log_p, classes = log_p.sort(dim=1, descending=True)
            before = log_p.exp().cumsum(dim=1).roll(1, dims=1)
            before[:, 0] = 0
            kept = before < self.top_p
            width = int(kept.sum(dim=1).max())
            log_p = log_p.masked_fill(~kept, -torch.inf)[:, :width]
        elif self.top_k is not None:
            log_p, classes = log_p.topk(min(self.top_k, log_p.size(1)), dim=1)
        # Not exp(), which is 0 of very unlikely tokens; NaN scores are refused after the search.
        weights = log_p.softmax(dim=1).nan_to_num(1.0)
        drawn = torch.multinomial(weights, number, replacement=True)
        found = drawn if classes is None else classes.gather(1, drawn)
        return log_p.gather(1, drawn), found
