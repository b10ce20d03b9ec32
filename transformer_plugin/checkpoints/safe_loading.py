"""Checkpoints are read as data: no code in one is ever executed.

fairseq reads its checkpoints by a plain ``torch.load``, which since torch 2.6 refuses the
``argparse.Namespace`` that they hold, and before would run whatever they contain.
"""

from __future__ import annotations

import argparse
import collections
import functools
import pickle
import re
import types
from pathlib import Path
from typing import IO, Any

import torch

# Every type that fairseq's checkpoints hold beside tensors and torch's own; none does more at
# loading than store values.
_HARMLESS = (argparse.Namespace, collections.defaultdict, collections.deque)
# Old ones pickled numpy scalars; their parts, under the names of numpy 1 and 2.
_NUMPY_NAMES = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")


class CheckpointError(ValueError):
    """A checkpoint that cannot be read; the message names the file and what to do."""


def allow_fairseq_types() -> None:
    """Makes torch take the harmless types of fairseq's checkpoints, and fairseq read by ``load``.

    Doing it again changes nothing.
    """
    torch.serialization.add_safe_globals(_safe_globals())
    from fairseq import checkpoint_utils

    checkpoint_utils.torch = _SafeTorch(torch)


def load(file: str | Path | IO[bytes], map_location: Any = "cpu", **options: Any) -> dict[str, Any]:
    """A checkpoint's contents.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: the file is damaged, or holds a type that is not known to be harmless.
    """
    name = getattr(file, "name", file)
    options.pop("weights_only", None)
    try:
        with torch.serialization.safe_globals(_safe_globals()):
            return torch.load(file, map_location=map_location, weights_only=True, **options)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: no such checkpoint") from None
    except pickle.UnpicklingError as error:
        raise CheckpointError(_explain(name, str(error))) from None
    except (RuntimeError, EOFError, ValueError, KeyError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(
            f"{name}: not a whole checkpoint ({reason}); it was cut off or is another kind of"
            " file: take an older checkpoint of the run"
        ) from None


@functools.cache
def _safe_globals() -> list[Any]:
    import numpy as np

    scalar = np.float64(0).__reduce__()[0]
    kinds = {type(np.dtype(code)) for code in ("f2", "f4", "f8", "i4", "i8", "b1")}
    return [*_HARMLESS, *((scalar, name) for name in _NUMPY_NAMES), np.dtype, *kinds]


def _explain(name: object, message: str) -> str:
    refused = re.search(r"GLOBAL ([\w.]+)", message) or re.search(r"of type (\S+)", message)
    if refused is None:
        reason = message.splitlines()[-1] if message else "unknown"
        return f"{name}: not a checkpoint that can be read safely ({reason})"
    return (
        f"{name}: refused, because it holds {refused.group(1)}, which is no type of a fairseq"
        " checkpoint and could run code; nothing of it was executed. Get the checkpoint from a"
        " source you trust, saved without that type"
    )


class _SafeTorch(types.ModuleType):
    """torch as ``fairseq.checkpoint_utils`` sees it: the same, but for ``load``."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module if not isinstance(module, _SafeTorch) else module._module

    load = staticmethod(load)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
