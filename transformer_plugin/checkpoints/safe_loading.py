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

# Beside tensors and Python's own; none does more at loading than store values.
_HARMLESS = (argparse.Namespace, collections.defaultdict, collections.deque)


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message names the file and what to do."""


def allow_fairseq_types() -> None:
    """Makes torch take the harmless types of fairseq's checkpoints, and fairseq read by ``load``.

    Doing it again changes nothing.
    """
    torch.serialization.add_safe_globals(list(_HARMLESS))
    from fairseq import checkpoint_utils
    from fairseq.distributed import utils as distributed_utils

    checkpoint_utils.torch = _TorchWith(load)
    # Where several processes train, the first reads the checkpoint, as data, and sends it to the
    # others as objects of its own memory.
    distributed_utils.torch = _TorchWith(functools.partial(torch.load, weights_only=False))


def load(file: str | Path | IO[bytes], map_location: Any = "cpu", **options: Any) -> dict[str, Any]:
    """A checkpoint's contents.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: the file is damaged, or holds a type that is not known to be harmless.
    """
    name = file if isinstance(file, str | Path) else getattr(file, "name", file)
    options.pop("weights_only", None)
    try:
        with _only_harmless_types():
            return torch.load(file, map_location=map_location, weights_only=True, **options)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such checkpoint") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # torch's for an archive whose end is missing
            raise
        raise CheckpointError(_damaged(name, "its end is missing")) from None
    except (MemoryError, torch.cuda.OutOfMemoryError):
        raise
    except pickle.UnpicklingError as error:
        raise CheckpointError(_explain(name, str(error))) from None
    except Exception as error:  # a damaged pickle can raise anything
        raise CheckpointError(_damaged(name, str(error) or type(error).__name__)) from None


@contextlib.contextmanager
def _only_harmless_types() -> Iterator[None]:
    """Within it torch takes our types and no others, whatever else the process has allowed."""
    from .stand_ins import STAND_INS

    before = list(torch.serialization.get_safe_globals())
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals([*_HARMLESS, *STAND_INS])
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
    return (
        f"{name}: refused, because it holds {refused.group(1)}, which is no type of a fairseq"
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
