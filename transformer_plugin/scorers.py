"""The plugin's model, or several of them, as beam search asks for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .model import VaswaniTransformer
from .modules.cache import Ancestry
from .modules.candidates import largest
from .modules.log_normaliser import log_normaliser


class ModelScorer:
    """One model at the start of B source sentences.

    Args:
        model: in evaluation mode.
        src_tokens: ``[B, S]``.
        temperature: divides the logits.
    """

    def __init__(
        self,
        model: VaswaniTransformer,
        src_tokens: Tensor,
        temperature: float = 1.0,
    ) -> None:
        self.decoder = model.decoder
        self.temperature = temperature
        memory, packing, _weights = model.encoder.encode(src_tokens)
        self.caches = self.decoder.start(packing.pad(memory), packing.allowed)
        self.ancestry = Ancestry(src_tokens.size(0), self.caches[0].memory_keys)

    def step(self, tokens: Tensor, position: int) -> Tensor:
        """Logits ``[B, k, V]`` of what follows ``tokens``, ``[B, k]``."""
        x, _weights = self.decoder.step(tokens, position, self.caches, self.ancestry.extend())
        logits = self.decoder.output_layer(x)
        return logits if self.temperature == 1.0 else logits / self.temperature

    def normaliser(self, scores: Tensor) -> Tensor:
        """log of the sum over the classes of exp(logit), ``[B, k, 1]``, float32."""
        return log_normaliser(scores)

    def largest(self, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The largest logits of each hypothesis and their classes, ``[B, k, count]``."""
        shape = (*scores.shape[:2], count)
        values, classes = largest(scores.flatten(0, 1), count)
        return values.view(shape), classes.view(shape)

    def follow(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""
        self.ancestry.follow(parents)

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences alone, ``[b]``."""
        self.ancestry.select(sentences)
        for cache in self.caches:
            cache.select(sentences)


class EnsembleScorer:
    """Several models; the mean of their probabilities.

    Args:
        scorers: one a model, at the start of the same sentences.
    """

    def __init__(self, scorers: Sequence[ModelScorer]) -> None:
        self.scorers = scorers
        self.largest = scorers[0].largest

    def step(self, tokens: Tensor, position: int) -> Tensor:
        """Log-probabilities ``[B, k, V]``."""
        log_p = [s.step(tokens, position).log_softmax(dim=2) for s in self.scorers]
        return torch.stack(log_p).logsumexp(dim=0) - math.log(len(log_p))

    def normaliser(self, scores: Tensor) -> Tensor:
        """Zero: they are log-probabilities already."""
        return scores.new_zeros(*scores.shape[:2], 1)

    def follow(self, parents: Tensor) -> None:
        """Each model follows, ``[B, k]``."""
        for scorer in self.scorers:
            scorer.follow(parents)

    def select(self, sentences: Tensor) -> None:
        """Each model keeps these sentences alone, ``[b]``."""
        for scorer in self.scorers:
            scorer.select(sentences)
