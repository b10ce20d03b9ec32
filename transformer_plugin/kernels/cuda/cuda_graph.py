"""Records a decoding step once and replays it, so that a GPU does not wait for kernel launches."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...modules.decoder import Decoder
from ...modules.layers import DecoderLayer
from ...modules.multi_head_attention import MultiHeadAttention
from ...modules.operation import is_exactly
from ...modules.packing import Packing
from ...search.beam_search import may_have_ended, worth_shrinking
from ...search.decoder_state import CachedDecoder, start_decoding
from ...search.kv_cache import KVCache, Memory
from ..registry import kernel
from .static_cache import StaticKVCache

logger = logging.getLogger(__name__)

# Packages whose modules do the same in each step.
_PLAIN = (f"{Decoder.__module__.rpartition('.')[0]}.", "torch.nn.modules.")
Step = Callable[[], Tensor]


def _supports(
    decoder: Decoder,
    memory: Tensor,
    packing: Packing,
    num_hypotheses: int = 1,
    need_weights: bool = False,
) -> bool:
    return (
        not need_weights
        and is_in_use(memory.device)
        and not torch.is_grad_enabled()
        and _is_recordable(decoder)
    )


def _is_recordable(decoder: Decoder) -> bool:
    """Whether a decoder does the same in each step: user code may not."""
    kind, modules = type(decoder), list(decoder.modules())  # the decoder itself first
    return (
        (kind.embed, kind.through_layers) == (Decoder.embed, Decoder.through_layers)
        and all(is_exactly(each, type(each)) and not each.training for each in modules)
        and all(type(each).__module__.startswith(_PLAIN) for each in modules[1:])
        and all(is_exactly(layer, DecoderLayer) for layer in decoder.layers)
        and all(
            is_exactly(each, MultiHeadAttention) and not each.window
            for layer in decoder.layers
            for each in (layer.self_attention, layer.encoder_attention)
        )
    )


@kernel(start_decoding, _supports, stands_for=[start_decoding, DecoderLayer, KVCache])
def start(
    decoder: Decoder,
    memory: Tensor,
    packing: Packing,
    num_hypotheses: int = 1,
    need_weights: bool = False,
) -> RecordedDecoder:
    """See ``start_decoding``."""
    memories = [Memory.of(layer.encoder_attention, memory, packing) for layer in decoder.layers]
    cache = StaticKVCache(memories, num_hypotheses, packing.max_length, decoder.max_positions())
    return RecordedDecoder(CachedDecoder(decoder, cache), cache)


class RecordedDecoder:
    """A decoder's step over a static cache (see ``DecoderState``), without weights.

    The first step with a given token shape and cache version runs unrecorded, which triggers lazy
    initialisation. The second is recorded and then replayed.

    Args:
        decoder: the decoder to record.
        cache: holds all tensors that a step changes.
    """

    def __init__(self, decoder: CachedDecoder, cache: StaticKVCache) -> None:
        self._decoder, self._cache = decoder, cache
        self.reorder, self.select = cache.reorder, cache.select
        self._kind: tuple[int, torch.Size] | None = None
        self._tokens: Tensor | None = None
        self._replay: Step | None = None

    def bind(self) -> None:
        """See ``DecoderState``; a recorded step is bound to the decoder as it is."""

    def step(self, tokens: Tensor, need_weights: bool = False) -> tuple[Tensor, None]:
        """See ``DecoderState``."""
        self._cache.make_room()
        kind = (self._cache.version, tokens.shape)
        if kind != self._kind:
            self._kind, self._tokens, self._replay = kind, None, None
            return self._features(tokens), None
        if self._tokens is None or self._replay is None:
            self._tokens = tokens.clone()
            self._replay = cuda_graph(partial(self._features, self._tokens))
        self._tokens.copy_(tokens)
        return self._replay(), None

    def _features(self, tokens: Tensor) -> Tensor:
        return self._decoder.step(tokens)[0]


def is_in_use(device: torch.device) -> bool:
    """Whether steps are recorded: on a GPU, unless ``TRANSFORMER_PLUGIN_CUDA_GRAPHS`` is 0 or a
    recording has failed."""
    wanted = os.environ.get("TRANSFORMER_PLUGIN_CUDA_GRAPHS", "1") != "0"
    return device.type == "cuda" and wanted and not _recordings.failed


class _Recordings(threading.local):
    """What all recordings of a thread share: a stream, so that cuBLAS has one workspace, and a
    memory pool. Sharing is safe: a thread's graphs are replayed one after the other, and each
    result is copied: the graph of another model of an ensemble may write to the same memory.

    Attributes:
        failed: whether a recording has failed, in any thread; the next would fail too.
    """

    failed = False

    def __init__(self) -> None:
        self._of_devices: dict[int, tuple[torch.cuda.Stream, torch.cuda.CUDAGraph]] = {}

    def record(self, step: Step) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """The graph of a step, and where it writes its result."""
        device = torch.cuda.current_device()
        if device not in self._of_devices:
            # torch fails on a pool whose graphs are all gone. This one is never replayed.
            stream = torch.cuda.Stream()
            first, _ = _record(lambda: torch.zeros(1, device=f"cuda:{device}"), stream, None)
            self._of_devices[device] = stream, first
        stream, first = self._of_devices[device]
        return _record(step, stream, first.pool())


_recordings = _Recordings()


def _record(
    step: Step, stream: torch.cuda.Stream, pool: Any
) -> tuple[torch.cuda.CUDAGraph, Tensor]:
    # torch.cuda.graph is not used: it first synchronises and empties torch's memory cache.
    graph = torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        graph.capture_begin(pool, capture_error_mode="thread_local")
        try:
            features = step()
        except BaseException:
            with contextlib.suppress(RuntimeError):  # the first error is more informative
                graph.capture_end()
            raise
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph, features


def cuda_graph(step: Step) -> Step:
    """Records a step as a CUDA graph; returns the step itself if it cannot be recorded. No more
    steps are recorded after that.

    Raises:
        torch.cuda.OutOfMemoryError: as the step itself would.
    """
    if _recordings.failed:
        return step
    try:
        graph, features = _recordings.record(step)
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError as error:
        _Recordings.failed = True
        logger.warning("decoding without CUDA graphs, which is slower: %s", error)
        return step

    def replay() -> Tensor:
        graph.replay()
        return features.clone()

    return replay


@kernel(worth_shrinking, lambda num_live, sentences: is_in_use(sentences.device))
def worth_recording(num_live: int, sentences: Tensor) -> bool:
    """See ``worth_shrinking``; a step of another size must be recorded again, which takes time."""
    return num_live < 0.5 * sentences.numel()


@kernel(may_have_ended, lambda ended: ended.device.type != "cpu")
def assume_ended(ended: Tensor) -> bool:
    """See ``may_have_ended``; the host does not wait for the GPU's result."""
    return True
