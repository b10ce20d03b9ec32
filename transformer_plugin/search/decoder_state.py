"""Step-by-step decoding: a decoder and its state of the earlier positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from torch import Tensor, nn

from ..modules.decoder import Decoder
from ..modules.key_values import KeyValues
from ..modules.multi_head_attention import MultiHeadAttention
from ..modules.operation import operation
from ..modules.packing import Packing
from .kv_cache import KVCache, Memory


class DecoderState(Protocol):
    """A decoder at one position of k hypotheses for each of B sentences; B and k may change."""

    def step(self, tokens: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Features ``[B, k, D]`` of the position after ``tokens``, ``[B, k]``; and, if needed, the
        last layer's encoder-decoder weights, averaged over the heads, ``[B, k, S]``.

        Raises:
            ValueError: there are not k tokens, or a layer runs twice.
        """

    def bind(self) -> None:
        """Promises that the decoder does not change before the last step, which may be faster."""

    def reorder(self, parents: Tensor) -> None:
        """Replaces hypothesis j by hypothesis ``parents[:, j]``, ``[B, k]``."""

    def select(self, sentences: Tensor) -> None:
        """Replaces sentence i by sentence ``sentences[i]``, ``[b]``."""


@operation
def prepare_decoding(model: nn.Module, rows: int) -> None:
    """Prepares a model for searches with unchanged weights; the plain version does nothing.

    Args:
        rows: approximate number of hypotheses of all sentences in one step.
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
        num_hypotheses: expected k; each sentence starts with one hypothesis.
        need_weights: whether ``step`` may be called with ``need_weights``.

    Raises:
        ValueError: a layer has no encoder-decoder attention, or several.
    """
    memories = [Memory.of(_encoder_attention(each), memory, packing) for each in decoder.layers]
    return CachedDecoder(decoder, KVCache(memories, num_hypotheses * packing.max_length))


def _encoder_attention(layer: nn.Module) -> MultiHeadAttention:
    """The encoder-decoder attention of a layer, also where a module of the user's own wraps it."""
    found: list[Any] = [each for each in layer.modules() if getattr(each, "encoder_decoder", False)]
    if len(found) != 1:
        raise ValueError(
            f"a layer of the decoder, {type(layer).__name__}, has {len(found)} encoder-decoder"
            " attentions (modules whose encoder_decoder is True): a search needs one"
        )
    return found[0]


LayersOfStep = Callable[[Tensor, Iterable[KeyValues]], Tensor]


@operation
def bind_layers(decoder: Decoder) -> LayersOfStep | None:
    """All layers of ``decoder`` in one step as a function of the embedded tokens of a position,
    ``[B, k, D]``, and the layers' caches, for a search in which the decoder does not change. None =
    ``Decoder.through_layers``, as it is in each step.
    """
    return None


class CachedDecoder:
    """The layers' own forward pass over a KV cache (see ``DecoderState``)."""

    def __init__(self, decoder: Decoder, cache: Any) -> None:
        self._decoder, self._cache = decoder, cache
        self._layers: LayersOfStep | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is bound to the decoder: a copy has its own."""
        return vars(self) | {"_layers": None}

    def bind(self) -> None:
        """See ``DecoderState``."""
        self._layers = bind_layers(self._decoder)

    def step(self, tokens: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """See ``DecoderState``."""
        decoder, cache = self._decoder, self._cache
        if tokens.size(1) != cache.width:
            raise ValueError(
                f"{tokens.size(1)} tokens for {cache.width} hypotheses of each sentence: a search"
                " starts with one, and reorder changes their number"
            )
        x = decoder.embed(tokens, cache.extend(), cache.room)
        if self._layers is not None and not need_weights:
            return self._layers(x, cache.layers), None
        last = (len(cache.layers) - 1,) if need_weights else ()
        x, asked = decoder.through_layers(x, cache.layers, last)
        if not asked or asked[0][1] is None:
            return x, None
        return x, asked[0][1].mean(dim=1)

    def reorder(self, parents: Tensor) -> None:
        """See ``DecoderState``."""
        self._cache.reorder(parents)

    def select(self, sentences: Tensor) -> None:
        """See ``DecoderState``; the number of sentences may grow."""
        self._cache.select(sentences)


@operation
def logit_chunks(
    project: Callable[[Tensor], Tensor], features: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Logits ``[R, V]`` of features ``[R, D]`` in chunks: the rows and their logits. The caller may
    overwrite the logits; they are valid until the next chunk."""
    yield slice(0, features.size(0)), project(features)
