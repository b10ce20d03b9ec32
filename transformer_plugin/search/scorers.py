"""The scorers of beam search: one or several models that decode step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ..modules.decoder import Decoder
from ..modules.packing import Packing
from .candidates import log_probabilities
from .decoder_state import logit_chunks, start_decoding


class Scores(NamedTuple):
    """Scores of the next token of some of the B * k hypotheses.

    Attributes:
        rows: which hypotheses.
        logits: log-probabilities up to a constant for each row, ``[r, V]``; may be overwritten;
            valid until the next chunk.
        log_total: log of the sum of each row's probabilities, ``[r]``; None = the sum is 1.
    """

    rows: slice
    logits: Tensor
    log_total: Tensor | None = None


class Scorer(Protocol):
    """The interface of a model, or of several together, to beam search."""

    def step(self, tokens: Tensor) -> Iterator[Scores]:
        """Scores of the successors of ``tokens``, ``[B, k]``, in chunks of rows."""

    def reorder(self, parents: Tensor) -> None:
        """Replaces hypothesis j by hypothesis ``parents[:, j]``, ``[B, k]``."""

    def select(self, sentences: Tensor) -> None:
        """Keeps only these sentences, ``[b]``."""


class LanguageModel(Protocol):
    """A language model of the target side, used together with a ``Scorer``."""

    def step(self, tokens: Tensor) -> Tensor:
        """Log-probabilities of the successors of ``tokens``, ``[B * k, V]``."""

    def reorder(self, parents: Tensor) -> None:
        """See ``Scorer``."""

    def select(self, sentences: Tensor) -> None:
        """See ``Scorer``."""


class ModelScorer:
    """One model at the start of B source sentences.

    It is in no reference cycle, so its memory is freed as soon as a search is over.

    Args:
        decoder: in evaluation mode; it must not change before the last step.
        memory: the encoder's packed output, ``[N_s, D]``.
        packing: its layout.
        num_hypotheses: k, for each sentence.
        temperature: divides the logits.

    Raises:
        ValueError: the temperature is not above 0.
    """

    def __init__(
        self,
        decoder: Decoder,
        memory: Tensor,
        packing: Packing,
        num_hypotheses: int,
        temperature: float = 1.0,
    ) -> None:
        if not temperature > 0:
            raise ValueError(f"temperature is {temperature}: expected a number above 0")
        self.state = start_decoding(decoder, memory, packing, num_hypotheses)
        self.state.bind()
        self.project, self.temperature = decoder.output_layer, temperature

    def step(self, tokens: Tensor) -> Iterator[Scores]:
        """See ``Scorer``."""
        features, _weights = self.state.step(tokens)
        for rows, logits in logit_chunks(self.project, features.flatten(0, 1)):
            if self.temperature != 1.0:
                logits = logits.div_(self.temperature)
            yield Scores(rows, logits)

    def reorder(self, parents: Tensor) -> None:
        """Replaces hypothesis j by hypothesis ``parents[:, j]``, ``[B, k]``."""
        self.state.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """Keeps only these sentences, ``[b]``."""
        self.state.select(sentences)


def _normalised(scores: Scores) -> Scores:
    if scores.log_total is not None:
        raise ValueError(
            "expected a scorer whose probabilities sum to 1: fuse a language model with the"
            " ensemble, not with one of its models, and only one"
        )
    return scores


class EnsembleScorer:
    """The mean of the probabilities of several models.

    Args:
        scorers: one for each model, at the start of the same sentences; their probabilities sum
            to 1, so none is a ``FusedScorer``.
    """

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        self.scorers = scorers

    def step(self, tokens: Tensor) -> Iterator[Scores]:
        """Logs of the sums of the models' probabilities."""
        models = [map(_normalised, scorer.step(tokens)) for scorer in self.scorers]
        chunks = [next(model) for model in models]  # the models may divide the rows differently
        start = 0
        while start < tokens.numel():
            stop = min(chunk.rows.stop for chunk in chunks)
            log_p, *others = (
                log_probabilities(logits[start - rows.start : stop - rows.start])
                for rows, logits, _ in chunks
            )
            for each in others:
                torch.logaddexp(log_p, each, out=log_p)
            yield Scores(slice(start, stop), log_p)
            chunks = [
                next(model, chunk) if chunk.rows.stop == stop else chunk
                for model, chunk in zip(models, chunks, strict=True)
            ]
            start = stop

    def reorder(self, parents: Tensor) -> None:
        """See ``ModelScorer``."""
        for scorer in self.scorers:
            scorer.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """Keeps only these sentences in each model, ``[b]``."""
        for scorer in self.scorers:
            scorer.select(sentences)


class FusedScorer:
    """Shallow fusion (Gulcehre et al. 2015): log-probabilities of a translation model plus weighted
    log-probabilities of a language model. The result is not normalised.

    Args:
        scorer: the translation model; its probabilities sum to 1.
        language_model: at the start of the same sentences.
        weight: weight of the language model.
    """

    def __init__(self, scorer: Scorer, language_model: LanguageModel, weight: float) -> None:
        self.scorer, self.language_model, self.weight = scorer, language_model, weight

    def step(self, tokens: Tensor) -> Iterator[Scores]:
        """See ``Scorer``."""
        added = self.language_model.step(tokens)
        # Not times 0, which makes NaN of the minus infinity of an impossible word.
        added = added * self.weight if self.weight else torch.zeros_like(added)
        for rows, logits, _ in map(_normalised, self.scorer.step(tokens)):
            fused = log_probabilities(logits).add_(added[rows])
            yield Scores(rows, fused, fused.logsumexp(dim=1))

    def reorder(self, parents: Tensor) -> None:
        """See ``Scorer``."""
        self.scorer.reorder(parents)
        self.language_model.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """See ``Scorer``."""
        self.scorer.select(sentences)
        self.language_model.select(sentences)
