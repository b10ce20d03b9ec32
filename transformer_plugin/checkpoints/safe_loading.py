"""Reads checkpoints as data: code in them is never executed."""

from __future__ import annotations

import argparse
import codecs
import collections
import contextlib
import errno
import pickle
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch

from ..checkpoint_error import CheckpointError, DamagedCheckpoint
from .contents_check import NotFinite, check_contents
from .pickled_names import UnknownName, check_names, is_archive
from .replacement_classes import REPLACEMENTS
from .settings_check import check_registered, check_settings

# Allowed besides tensors and Python's own types; loading them only stores values.
HARMLESS = (argparse.Namespace, collections.defaultdict, collections.deque)
_ALLOWED: list[Any] = [*HARMLESS, *REPLACEMENTS, codecs.encode]  # codecs.encode builds bytes


def load(
    file: str | Path | IO[bytes],
    map_location: Any = "cpu",
    registered: bool = False,
    mmap: bool = False,
    check_weights: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """A checkpoint's contents, checked.

    Args:
        registered: whether its model and task must be registered with fairseq.
        mmap: leave tensors on disk until they are used, if the format allows it.
        check_weights: read every weight and refuse inf and nan.

    Raises:
        FileNotFoundError: there is no such file.
        DamagedCheckpoint: the file is damaged, or weights are inf or nan.
        CheckpointError: it holds objects that are not known to be harmless, or does not fit into
            memory.
    """
    name = file if isinstance(file, str | Path) else getattr(file, "name", file)
    state, size = _unpickled(file, name, map_location=map_location, mmap=mmap, **options)
    try:
        check_contents(state, size, check_weights)
        check_settings(state)
        if registered:
            check_registered(state)
    except ValueError as error:
        kind = DamagedCheckpoint if isinstance(error, NotFinite) else CheckpointError
        raise kind(f"{name}: refused: {error}") from None
    return state


def load_header(path: Path) -> dict[str, Any]:
    """The contents of a checkpoint without the states of model and optimizer.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: as in ``load``, except for inf and nan.
    """
    state = load(path, mmap=True, check_weights=False)
    return {name: state[name] for name in state.keys() - {"model", "last_optimizer_state"}}


def damaged_part(path: Path) -> str | None:
    """The first part of a zip archive (torch's format since 1.6) that has a wrong CRC-32, which
    torch does not check."""
    with path.open("rb") as file:
        if not is_archive(file):
            return None
        try:
            with zipfile.ZipFile(file) as archive:
                return archive.testzip()
        except zipfile.BadZipFile:  # whoever loads it gets the reason
            return None


def _unpickled(
    file: str | Path | IO[bytes], name: object, mmap: bool, **options: Any
) -> tuple[Any, int]:
    """The contents of the file, and its size in bytes."""
    options.pop("weights_only", None)
    try:
        with contextlib.ExitStack() as stack:
            opened = stack.enter_context(open(file, "rb")) if isinstance(file, str | Path) else file
            size = check_names(opened, {f"{t.__module__}.{t.__qualname__}" for t in _ALLOWED})
            mmap = mmap and is_archive(opened)
        with _only_harmless_types():
            return torch.load(file, weights_only=True, mmap=mmap, **options), size
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such checkpoint") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # torch's error for an archive without an end
            raise
        raise _damaged(name, "its end is missing") from None
    except torch.cuda.OutOfMemoryError:
        raise
    except MemoryError:
        raise _too_large(name) from None
    except UnknownName as error:
        raise _unknown(name, str(error)) from None
    except pickle.UnpicklingError as error:
        raise _explained(name, str(error)) from None
    except Exception as error:  # a damaged pickle can raise anything
        if "allocate memory" in str(error):  # torch's RuntimeError
            raise _too_large(name) from None
        raise _damaged(name, str(error) or type(error).__name__) from None


@contextlib.contextmanager
def _only_harmless_types() -> Iterator[None]:
    """Context in which torch accepts only our types, whatever was allowed before."""
    before = list(torch.serialization.get_safe_globals())
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(_ALLOWED)
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _explained(name: object, message: str) -> CheckpointError:
    refused = re.search(r"GLOBAL ([\w.]+)", message) or re.search(r"of type (\S+)", message)
    if refused is None:
        reason = re.search(r"WeightsUnpickler error: (.+)", message)
        return _damaged(name, reason.group(1) if reason else "its contents end too early")
    return _unknown(name, refused.group(1))


def _unknown(name: object, asked: str) -> CheckpointError:
    return CheckpointError(
        f"{name}: refused, because it holds {asked}, which is not a type of a fairseq"
        " checkpoint and could run code; none of it was executed. Get the checkpoint from a"
        " source you trust, saved without that type"
    )


def _too_large(name: object) -> CheckpointError:
    return CheckpointError(f"{name}: refused: it needs more memory than there is")


def _damaged(name: object, reason: str) -> DamagedCheckpoint:
    return DamagedCheckpoint(
        f"{name}: not a whole checkpoint ({' '.join(reason.splitlines()[:1])}); it is truncated"
        " or another kind of file: use an older checkpoint of the run"
    )
