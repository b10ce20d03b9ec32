"""Checkpoints are read as data: no code in one is ever executed.

fairseq reads its checkpoints by a plain ``torch.load``, which since torch 2.6 refuses the
``argparse.Namespace`` that they hold, and before would run whatever they contain.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import errno
import functools
import pickle
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import torch

from .pickled_names import UnknownName, check_names

# Beside tensors and Python's own; none does more at loading than store values.
_HARMLESS = (argparse.Namespace, collections.defaultdict, collections.deque)


class CheckpointError(SystemExit, ValueError):
    """A checkpoint that cannot be used; the message names the file and what to do.

    fairseq's commands catch nothing: there it ends the process with that line and status 1.
    """


def allow_fairseq_types() -> None:
    """Makes torch take the harmless types of fairseq's checkpoints, fairseq read by ``load``,
    evaluate nothing but literals and build no model larger than its checkpoint.

    Doing it again changes nothing.
    """
    torch.serialization.add_safe_globals(list(_HARMLESS))
    from fairseq import checkpoint_utils
    from fairseq.distributed import utils as distributed_utils
    from fairseq.models.speech_to_text import xm_transformer

    from .literals import evaluate_literals_only
    from .model_building import building_within_size, reading_in_one_line

    checkpoint_utils.torch = _TorchWith(functools.partial(load, registered=True))
    xm_transformer.torch = _TorchWith(load)  # reads a file that a checkpoint may name
    checkpoint_utils.load_checkpoint_to_cpu = reading_in_one_line(
        checkpoint_utils.load_checkpoint_to_cpu
    )
    checkpoint_utils.load_model_ensemble_and_task = building_within_size(
        checkpoint_utils.load_model_ensemble_and_task
    )
    evaluate_literals_only()
    # Where several processes train, the first reads the checkpoint, as data, and sends it to the
    # others as objects of its own memory.
    distributed_utils.torch = _TorchWith(functools.partial(torch.load, weights_only=False))


def load(
    file: str | Path | IO[bytes],
    map_location: Any = "cpu",
    registered: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """A checkpoint's contents, checked.

    Args:
        registered: whether its model and task must be ones that fairseq can build here.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: the file is damaged, or holds what is not known to be harmless.
    """
    from .contents_check import check_contents
    from .settings_check import check_registered, check_settings

    name = file if isinstance(file, str | Path) else getattr(file, "name", file)
    state, size = _unpickled(file, name, map_location=map_location, **options)
    try:
        check_contents(state, size)
        check_settings(state)
        if registered:
            check_registered(state)
    except ValueError as error:
        raise CheckpointError(f"{name}: refused: {error}") from None
    return state


def _unpickled(file: str | Path | IO[bytes], name: object, **options: Any) -> tuple[Any, int]:
    """What the file holds, and how many bytes it has."""
    options.pop("weights_only", None)
    try:
        with contextlib.ExitStack() as stack:
            opened = stack.enter_context(open(file, "rb")) if isinstance(file, str | Path) else file
            size = check_names(opened, {f"{t.__module__}.{t.__qualname__}" for t in _allowed()})
        with _only_harmless_types():
            return torch.load(file, weights_only=True, **options), size
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such checkpoint") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # torch's for an archive whose end is missing
            raise
        raise CheckpointError(_damaged(name, "its end is missing")) from None
    except torch.cuda.OutOfMemoryError:
        raise
    except MemoryError:
        raise CheckpointError(f"{name}: refused: it asks for more memory than there is") from None
    except UnknownName as error:
        raise CheckpointError(_unknown(name, str(error))) from None
    except pickle.UnpicklingError as error:
        raise CheckpointError(_explain(name, str(error))) from None
    except Exception as error:  # a damaged pickle can raise anything
        raise CheckpointError(_damaged(name, str(error) or type(error).__name__)) from None


def _allowed() -> list[type]:
    from .stand_ins import STAND_INS

    return [*_HARMLESS, *STAND_INS]


@contextlib.contextmanager
def _only_harmless_types() -> Iterator[None]:
    """Within it torch takes our types and no others, whatever else the process has allowed."""
    before = list(torch.serialization.get_safe_globals())
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(_allowed())
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _explain(name: object, message: str) -> str:
    refused = re.search(r"GLOBAL ([\w.]+)", message) or re.search(r"of type (\S+)", message)
    if refused is None:
        reason = re.search(r"WeightsUnpickler error: (.+)", message)
        return _damaged(name, reason.group(1) if reason else "its contents end too early")
    return _unknown(name, refused.group(1))


def _unknown(name: object, asked: str) -> str:
    return (
        f"{name}: refused, because it holds {asked}, which is no type of a fairseq"
        " checkpoint and could run code; nothing of it was executed. Get the checkpoint from a"
        " source you trust, saved without that type"
    )


def _damaged(name: object, reason: str) -> str:
    return (
        f"{name}: not a whole checkpoint ({' '.join(reason.splitlines()[:1])}); it was cut off or"
        " is another kind of file: take an older checkpoint of the run"
    )


class _TorchWith(types.ModuleType):
    """torch as a module of fairseq sees it: the same, but for ``load``."""

    def __init__(self, load: Callable[..., Any]) -> None:
        super().__init__(torch.__name__)
        self.load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)
