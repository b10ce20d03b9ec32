"""Models that decode step by step, one or several of them, as beam search asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from ..modules.decoder import Decoder
from ..modules.packing import Packing
from .decoder_state import logit_chunks, start_decoding


class ModelScorer:
    """One model at the start of B source sentences.

    Nothing in it leads back to it, so that its memory is free as soon as a search is over.

    Args:
        decoder: in evaluation mode.
        project: its pre-softmax linear map.
        memory: the encoder's packed output, ``[N_s, D]``.
        packing: its layout.
        num_hypotheses: of each sentence, k.
        temperature: divides the logits.
    """

    def __init__(
        self,
        decoder: Decoder,
        project: Callable[[Tensor], Tensor],
        memory: Tensor,
        packing: Packing,
        num_hypotheses: int,
        temperature: float = 1.0,
    ) -> None:
        self.state = start_decoding(decoder, memory, packing, num_hypotheses)
        self.project, self.temperature = project, temperature

    def step(self, tokens: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Logits of what follows ``tokens``, ``[B, k]``: some of the B * k rows, and theirs,
        ``[r, V]``, which hold until the next ones are asked for."""
        features, _weights = self.state.step(tokens)
        for rows, logits in logit_chunks(self.project, features.flatten(0, 1)):
            yield rows, logits if self.temperature == 1.0 else logits.div_(self.temperature)

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""
        self.state.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """Keeps these sentences alone, ``[b]``."""
        self.state.select(sentences)


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

    def reorder(self, parents: Tensor) -> None:
        """See ``ModelScorer``."""
        for scorer in self.scorers:
            scorer.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """Each model keeps these sentences alone, ``[b]``."""
        for scorer in self.scorers:
            scorer.select(sentences)
