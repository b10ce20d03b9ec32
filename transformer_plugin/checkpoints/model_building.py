"""Limits the memory of the models that fairseq builds from checkpoints.

The settings in a small hostile file could describe a model that uses all memory.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..checkpoint_error import CheckpointError
from ..refusal import Refusal
from .safe_loading import load
from .settings_check import largest_numbers

# A model may use _FREE bytes (position tables, for example, are not in the file) plus _FACTOR times
# the file's size (weights are initialised, converted and copied). A tensor with its module counts
# as at least _SMALLEST bytes, so that many small ones add up.
_FREE = 2**30
_FACTOR = 16
_SMALLEST = 4096
_BY_SHAPE = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye}


class _TooLarge(BaseException):
    """The limit is exceeded. A BaseException, so that no handler of fairseq catches it."""


@contextlib.contextmanager
def reported_in_one_line(names: str) -> Iterator[None]:
    """Turns any exception from fairseq into a CheckpointError of one line."""
    try:
        yield
    except (Refusal, OSError):
        raise
    except Exception as error:
        if "can't allocate memory" in str(error):
            raise _TooLarge from error
        if os.environ.get("LOGLEVEL", "").upper() == "DEBUG":
            traceback.print_exc()
        if isinstance(error, KeyError) and error.args == ("best_loss",):
            raise CheckpointError(
                f"{names}: holds a model without the state of its training, which fairseq needs:"
                " use the checkpoint that it was made from"
            ) from error
        raise CheckpointError(
            f"{names}: fairseq cannot use it: {type(error).__name__}: {in_one_line(error)}"
            " (LOGLEVEL=DEBUG shows where)"
        ) from error


def in_one_line(error: object) -> str:
    """The message of an error, cut to 300 characters."""
    return " ".join(str(error).split())[:300]


def reading_in_one_line(read: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps fairseq's ``load_checkpoint_to_cpu``: any exception becomes a CheckpointError."""
    if hasattr(read, "__wrapped__"):
        return read

    @functools.wraps(read)
    def reading(path: str, *rest: Any, **options: Any) -> Any:
        with reported_in_one_line(str(path)):
            return read(path, *rest, **options)

    return reading


def building_within_size(build: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps fairseq's ``load_model_ensemble_and_task``: raises a CheckpointError instead of any
    exception, and for a model that would use far more memory than its file."""
    if hasattr(build, "__wrapped__"):
        return build

    @functools.wraps(build)
    def within_size(filenames: Sequence[str], *rest: Any, **options: Any) -> Any:
        names = ", ".join(map(str, filenames))
        size = sum(os.path.getsize(name) for name in filenames if os.path.isfile(name))
        try:
            with reported_in_one_line(names), _Allocations(_FREE + _FACTOR * size):
                return build(filenames, *rest, **options)
        except _TooLarge:
            settings = "; ".join(largest_numbers(load(name)) for name in filenames)
            raise CheckpointError(
                f"{names}: refused: its settings describe a model far larger than the file:"
                f" {settings}"
            ) from None

    return within_size


class _Allocations(TorchFunctionMode):
    """Context in which the tensors that torch creates or fills use at most ``left`` bytes.

    Raises:
        _TooLarge: they would use more.
    """

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left
        self._known: dict[int, int] = {}  # bytes by address

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        given = list(_tensors((args, kwargs)))
        self._take(given)  # also tensors that their class created and nothing has filled yet
        if func in _BY_SHAPE:
            shape = kwargs.get("size", args)
            shape = shape[0] if shape and isinstance(shape[0], tuple | list) else shape
            self._check(4 * math.prod(shape))
        elif func is torch.arange:
            self._check(4 * int(max(args, default=0)))
        elif given:
            self._check(_broadcast_bytes(given))
        result = func(*args, **kwargs)
        self._take(_tensors(result))
        return result

    def _check(self, size: int) -> None:
        if size > self.left:
            raise _TooLarge

    def _take(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            storage = tensor.untyped_storage()
            size = max(storage.nbytes(), _SMALLEST)
            more = size - self._known.get(storage.data_ptr(), 0)
            if more > 0:
                self._check(more)
                self.left -= more
                self._known[storage.data_ptr()] = size


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for below in value:
            yield from _tensors(below)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _broadcast_bytes(tensors: list[Tensor]) -> int:
    """Bytes of an element-wise result, the largest that building a model needs."""
    lengths = itertools.zip_longest(*(reversed(t.shape) for t in tensors), fillvalue=1)
    return math.prod(map(max, lengths)) * max(t.element_size() for t in tensors)
