"""The plugin's model, or several of them, as beam search asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from .decoder import VaswaniDecoder
from .model import VaswaniTransformer
from .modules.cache import Past
from .modules.decoding_weights import DecodingWeights
from .modules.logit_chunks import LogitChunks
from .modules.static_cache import StaticPast
from .recorded_step import RecordedStep, default_recorder


class ModelScorer:
    """One model at the start of B source sentences.

    Nothing in it leads back to it, so that its memory is free as soon as a search is over.

    Args:
        model: in evaluation mode.
        src_tokens: ``[B, S]``.
        num_hypotheses: of each sentence, k.
        weights: the decoder's.
        temperature: divides the logits.
    """

    def __init__(
        self,
        model: VaswaniTransformer,
        src_tokens: Tensor,
        num_hypotheses: int,
        weights: DecodingWeights,
        temperature: float = 1.0,
    ) -> None:
        self.temperature = temperature
        memory, packing, _weights = model.encoder.encode(src_tokens)
        recorder = default_recorder(src_tokens.device)
        self.past = model.decoder.start(
            memory, packing, num_hypotheses, static=bool(recorder), weights=weights
        )
        self.features: Callable[[Tensor], Tensor] = partial(_features, model.decoder, self.past)
        if recorder and isinstance(self.past, StaticPast):
            self.features = RecordedStep(self.features, self.past, recorder)
        self.chunks = LogitChunks(model.decoder.output_projection, weights.projection)

    def step(self, tokens: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Logits of what follows ``tokens``, ``[B, k]``: some of the B * k rows, and theirs,
        ``[r, V]``, which hold until the next ones are asked for."""
        for rows, logits in self.chunks(self.features(tokens).flatten(0, 1)):
            yield rows, logits if self.temperature == 1.0 else logits.div_(self.temperature)

    def follow(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""
        self.past.follow(parents)

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences alone, ``[b]``."""
        self.past.select(sentences)


def _features(decoder: VaswaniDecoder, past: Past, tokens: Tensor) -> Tensor:
    x, _weights = decoder.step(tokens, past)
    return x


class EnsembleScorer:
    """Several models; the mean of their probabilities.

    Args:
        scorers: one a model, at the start of the same sentences.
    """

    def __init__(self, scorers: Sequence[ModelScorer]) -> None:
        self.scorers = scorers

    def step(self, tokens: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Logs of the sums of the models' probabilities, as ``ModelScorer.step`` gives logits."""
        for chunks in zip(*(s.step(tokens) for s in self.scorers), strict=True):
            p = sum(logits.softmax(dim=1, dtype=torch.float32) for _rows, logits in chunks)
            yield chunks[0][0], p.clamp_min_(torch.finfo(p.dtype).tiny).log_()

    def follow(self, parents: Tensor) -> None:
        """Each model follows, ``[B, k]``."""
        for scorer in self.scorers:
            scorer.follow(parents)

    def select(self, sentences: Tensor) -> None:
        """Each model keeps these sentences alone, ``[b]``."""
        for scorer in self.scorers:
            scorer.select(sentences)
