"""What a search gives the encoder."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .model import VaswaniTransformer
from .modules.operation import is_unmodified
from .modules.packing import Packing

logger = logging.getLogger(__name__)
# Tokens with padding that are encoded at once on a CPU. Larger activations would be allocated and
# returned to the system each time, with page faults that cost up to a third of the encoder's time.
_CPU_PART = 4096
_NOT_FOR_ENCODERS = ("src_lengths", "prev_output_tokens")


class EncoderInput(NamedTuple):
    """Sentences of a batch.

    Attributes:
        tokens: source ids with end of sentence, padded, ``[B, S]``.
        extra: what a task of the user's own has added to ``net_input``.
    """

    tokens: Tensor
    extra: dict[str, Any]

    @classmethod
    def of(cls, net_input: Mapping[str, Any], sentences: Tensor, pad: int) -> EncoderInput:
        """Some sentences, ``[b]``, of fairseq's ``net_input``: their rows of each tensor or list
        that has one for each sentence, and whatever else is there."""
        size = len(net_input["src_tokens"])

        def rows_of(value: Any) -> Any:
            if isinstance(value, list) and len(value) == size:
                return [value[i] for i in sentences.tolist()]
            has_rows = torch.is_tensor(value) and value.shape[:1] == (size,)
            return value[sentences] if has_rows else value

        extra = {n: rows_of(x) for n, x in net_input.items() if n not in _NOT_FOR_ENCODERS}
        tokens = extra.pop("src_tokens")
        if not extra:  # which may have a column for each token
            tokens = tokens[:, tokens.ne(pad).any(dim=0)]
        return cls(tokens, extra)

    def encode(self, model: VaswaniTransformer) -> tuple[Tensor, Packing]:
        """The encoder's packed output, ``[N_s, D]``, and its layout. What its ``encode`` does not
        take is ignored, with a warning."""
        encoder, extra = model.encoder, self.extra
        if extra:
            extra = _taken(type(encoder).encode, extra)
        elif self.tokens.numel() > _CPU_PART and not self.tokens.is_cuda and is_unmodified(encoder):
            parts = self.tokens.split(max(1, _CPU_PART // self.tokens.size(1)))
            return _joined([encoder.encode(part)[:2] for part in parts])
        memory, packing, _weights = encoder.encode(self.tokens, **extra)
        return memory, packing


def _joined(parts: Sequence[tuple[Tensor, Packing]]) -> tuple[Tensor, Packing]:
    """The packed rows of several parts of a batch, without idle rows, and their layout."""
    lengths = torch.cat([packing.lengths for _rows, packing in parts])
    rows = torch.cat([rows[: int(packing.offsets[-1])] for rows, packing in parts])
    longest = max(packing.max_length for _rows, packing in parts)
    return rows, Packing.of_lengths(lengths, longest)


def _taken(encode: Callable[..., Any], extra: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(encode).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return extra
    for name in extra.keys() - known.keys():
        _warn(f"the search ignores '{name}' of net_input: {encode.__qualname__} does not take it")
    return {name: value for name, value in extra.items() if name in known}


@functools.cache  # once for each message
def _warn(message: str) -> None:
    logger.warning(message)
