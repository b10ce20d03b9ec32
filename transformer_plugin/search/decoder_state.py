"""Step-by-step decoding: a decoder with what it remembers of the positions before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from torch import Tensor

from ..modules.decoder import Decoder
from ..modules.key_values import KeyValues
from ..modules.operation import operation
from ..modules.packing import Packing
from .kv_cache import KVCache, Memory


class DecoderState(Protocol):
    """A decoder at some position of k hypotheses of each of B sentences; B and k may change."""

    def step(self, tokens: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Features ``[B, k, D]`` of the position behind ``tokens``, ``[B, k]``; and, when asked,
        the last layer's encoder-decoder weights, averaged over the heads, ``[B, k, S]``."""

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis j goes on from what hypothesis ``parents[:, j]`` was, ``[B, k]``."""

    def select(self, sentences: Tensor) -> None:
        """Makes sentence i what sentence ``sentences[i]`` was, ``[b]``."""


@operation
def prepare_decoding(decoder: Decoder, rows: int) -> None:
    """Makes a decoder ready for searches, between which its weights do not change: does nothing.

    Args:
        rows: hypotheses of all sentences, about as many as come to a step together.
    """


@operation
def start_decoding(
    decoder: Decoder,
    memory: Tensor,
    packing: Packing,
    num_hypotheses: int = 1,
    need_weights: bool = False,
) -> DecoderState:
    """The state before the first step.

    Args:
        memory: the encoder's packed output, ``[N_s, D]``.
        packing: its layout.
        num_hypotheses: of each sentence, k.
        need_weights: whether a step may be asked for weights.
    """
    memories = [Memory.of(layer.encoder_attention, memory, packing) for layer in decoder.layers]
    return CachedDecoder(decoder, KVCache(memories, num_hypotheses * packing.max_length))


class CachedDecoder:
    """The layers' own forward pass over a KV cache (see ``DecoderState``)."""

    def __init__(self, decoder: Decoder, cache: Any) -> None:
        self._decoder, self._cache = decoder, cache

    def step(self, tokens: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """See ``DecoderState``."""
        decoder, cache = self._decoder, self._cache
        x = decoder.embed(tokens, cache.extend(), cache.room)
        return step_through_layers(decoder, x, cache.layers, need_weights)

    def reorder(self, parents: Tensor) -> None:
        """See ``DecoderState``."""
        self._cache.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """See ``DecoderState``; also for more sentences than there were."""
        self._cache.select(sentences)


def step_through_layers(
    decoder: Decoder, x: Tensor, caches: Sequence[KeyValues], need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """One position, ``[B, k, D]``, through all layers; see ``DecoderState.step``."""
    last = (len(caches) - 1,) if need_weights else ()
    x, asked = decoder.through_layers(x, caches, last)
    if not asked or asked[0][1] is None:
        return x, None
    return x, asked[0][1].mean(dim=1)


@operation
def logit_chunks(
    project: Callable[[Tensor], Tensor], features: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Logits ``[R, V]`` of features ``[R, D]``, some rows at a time: which, and their logits, which
    the caller may change and which hold until the next ones are asked for."""
    yield slice(0, features.size(0)), project(features)
