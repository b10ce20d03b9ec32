"""A decoder's step recorded once and replayed, so that a GPU does not wait for its launches."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from .modules.static_cache import StaticPast

logger = logging.getLogger(__name__)

Step = Callable[[], Tensor]
Recorder = Callable[[Step], Step]  # of what a step does, which it does not do yet


class RecordedStep:
    """A step over a static past.

    The first step of a kind, that is of a shape and a version of the past, is made as it is, which
    warms up what is made at first use; the next one is recorded, and replayed from then on.

    Args:
        step: features ``[B, k, D]`` of tokens ``[B, k]``; takes the position up in ``past``.
        past: where all that a step changes lies.
        recorder: how to record.
    """

    def __init__(
        self, step: Callable[[Tensor], Tensor], past: StaticPast, recorder: Recorder
    ) -> None:
        self._step, self._past, self._recorder = step, past, recorder
        self._kind: tuple[int, torch.Size] | None = None
        self._tokens: Tensor | None = None
        self._replay: Step | None = None

    def __call__(self, tokens: Tensor) -> Tensor:
        """Features ``[B, k, D]``, which hold until the next step."""
        self._past.make_room()
        kind = (self._past.version, tokens.shape)
        if kind != self._kind:
            self._kind, self._tokens, self._replay = kind, None, None
            return self._step(tokens)
        if self._tokens is None or self._replay is None:
            self._tokens = tokens.clone()
            self._replay = self._recorder(partial(self._step, self._tokens))
        self._tokens.copy_(tokens)
        return self._replay()


def default_recorder(device: torch.device) -> Recorder | None:
    """CUDA graphs on a GPU, unless ``TRANSFORMER_PLUGIN_CUDA_GRAPHS`` is 0; None elsewhere."""
    wanted = os.environ.get("TRANSFORMER_PLUGIN_CUDA_GRAPHS", "1") != "0"
    return cuda_graph if device.type == "cuda" and wanted else None


def cuda_graph(step: Step) -> Step:
    """Records a step as a CUDA graph; a step that cannot be recorded is made as it is.

    Raises:
        torch.OutOfMemoryError: as the step itself would.
    """
    # Not by torch.cuda.graph, which collects garbage and empties torch's cache of memory first.
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                features = step()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the one above says more
                    graph.capture_end()
                raise
            graph.capture_end()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        logger.warning("decoding without a CUDA graph, which is slower: %s", error)
        return step
    torch.cuda.current_stream().wait_stream(stream)

    def replay() -> Tensor:
        graph.replay()
        return features

    return replay
