"""Step-by-step decoding: a decoder with what it remembers of the positions before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from torch import Tensor, nn

from ..modules.operation import operation
from ..modules.packing import Packing
from .kv_cache import KVCache, Memory


class StepDecoder(Protocol):
    """What a decoder must have to be run step by step."""

    layers: Any  # nn.ModuleList of DecoderLayer
    norm: nn.Module | None

    def embed(self, tokens: Tensor, positions: Tensor, max_length: int) -> Tensor:
        """The layers' input, ``[..., D]``, of tokens at ``positions``, all below ``max_length``."""


    def max_positions(self) -> int:
        """The longest hypothesis, in tokens."""


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
def prepare_decoding(decoder: StepDecoder, project: Callable[..., Any], rows: int) -> Any:
    """What the searches of one call share, for ``start_decoding`` and ``logit_chunks``: nothing.

    Args:
        project: the pre-softmax linear map.
        rows: hypotheses of all sentences, about as many as come to a step together.
    """
    return None


@operation
def start_decoding(
    decoder: StepDecoder,
    memory: Tensor,
    packing: Packing,
    num_hypotheses: int = 1,
    need_weights: bool = False,
    prepared: Any = None,
) -> DecoderState:
    """The state before the first step.

    Args:
        memory: the encoder's packed output, ``[N_s, D]``.
        packing: its layout.
        num_hypotheses: of each sentence, k.
        need_weights: whether a step may be asked for weights.
        prepared: what ``prepare_decoding`` gave.
    """
    memories = [Memory.of(layer.encoder_attention, memory, packing) for layer in decoder.layers]
    return CachedDecoder(decoder, KVCache(memories, num_hypotheses * packing.max_length))


class CachedDecoder:
    """The layers' own forward pass over a KV cache (see ``DecoderState``)."""

    def __init__(self, decoder: StepDecoder, cache: Any) -> None:
        self._decoder, self._cache = decoder, cache

    def step(self, tokens: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """See ``DecoderState``."""
        decoder, cache = self._decoder, self._cache
        x = decoder.embed(tokens, cache.extend(), cache.room)
        return through_layers(decoder, x, cache.layers, need_weights)

    def reorder(self, parents: Tensor) -> None:
        """See ``DecoderState``."""
        self._cache.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """See ``DecoderState``; also for more sentences than there were."""
        self._cache.select(sentences)


def through_layers(
    decoder: StepDecoder, x: Tensor, layers: Any, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """One position ``[B, k, D]`` through all layers, each with its keys and values in ``layers``;
    see ``DecoderState.step``."""
    weights: Tensor | None = None
    for layer, key_values in zip(decoder.layers, layers, strict=True):
        asked = need_weights and layer is decoder.layers[-1]
        x, _self_weights, weights = layer(x, key_values, asked)
    if decoder.norm is not None:
        x = decoder.norm(x)
    return x, None if weights is None else weights.mean(dim=1)


@operation
def logit_chunks(
    project: Callable[[Tensor], Tensor], features: Tensor, prepared: Any = None
) -> Iterator[tuple[slice, Tensor]]:
    """Logits ``[R, V]`` of features ``[R, D]``, some rows at a time: which, and their logits, which
    the caller may change and which hold until the next ones are asked for."""
    yield slice(0, features.size(0)), project(features)
