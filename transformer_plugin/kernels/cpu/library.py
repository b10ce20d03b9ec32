"""The C++ kernels (``csrc/``), compiled on first use for the present machine."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import platform
import threading
from collections.abc import Callable, Sequence
from ctypes import byref, c_int64, c_void_p
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ... import processor
from . import shared_library

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

FOLDER = Path(__file__).parent
SOURCES = sorted(FOLDER.glob("csrc/*.cpp"))
OPERATORS = sorted(FOLDER.glob("csrc/torch/*.cpp"))
HEADERS = sorted(FOLDER.glob("csrc/*.h"))
LANES = 16  # largest vector width of the kernels
TYPES = (torch.float32, torch.bfloat16)  # as in vectors.h
_OPTIMISED = ["-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno"]


def is_supported(rows: Tensor, *widths: int) -> bool:
    """Whether the kernels exist and support these rows, with parts of these widths."""
    return (
        type(rows) in (Tensor, nn.Parameter)  # a subclass may have no memory of its own
        and rows.device.type == "cpu"
        and rows.dtype in TYPES
        and all(width % LANES == 0 for width in widths)
        and kernels() is not None
    )


def address(tensor: Tensor | None) -> c_void_p:
    """The address of the first element; null for None."""
    return c_void_p(None if tensor is None else tensor.data_ptr())


def run(
    name: str, dtype: torch.dtype, numbers: ctypes.Structure, tensors: Sequence[Tensor | None]
) -> None:
    """Calls the kernel ``name`` for ``dtype``, with torch's number of threads."""
    threads = c_int64(torch.get_num_threads())
    function(name, dtype)(byref(numbers), openmp_entry_point(), threads, *map(address, tensors))


@functools.cache
def function(name: str, dtype: torch.dtype) -> Callable[..., object]:
    """The C++ function ``name`` for tensors of this type; it needs ``kernels()``."""
    return ctypes.CFUNCTYPE(None)(entry_point(name, dtype))


@functools.cache
def entry_point(name: str, dtype: torch.dtype) -> int:
    """The address of ``function``."""
    library = kernels()
    assert library is not None
    instances = (ctypes.c_size_t * len(TYPES)).in_dll(library, f"{name}_instances")
    return instances[TYPES.index(dtype)]


@functools.cache
def openmp_entry_point() -> c_void_p:
    """The entry point of the OpenMP library that torch loads; null if there is none."""
    parallel = getattr(ctypes.CDLL(None), "GOMP_parallel", None)
    return c_void_p() if parallel is None else ctypes.cast(parallel, c_void_p)


def _once(load: Callable[[], Result]) -> Callable[[], Result]:
    """``functools.cache`` for threads: they wait while the first of them loads. To register an
    operator twice would end the process."""
    cached, lock = functools.cache(load), threading.Lock()

    @functools.wraps(load)
    def loaded() -> Result:
        with lock:
            return cached()

    vars(loaded).update(cache_clear=cached.cache_clear)
    return loaded


@_once
def kernels() -> ctypes.CDLL | None:
    """The kernels; None if ``TRANSFORMER_PLUGIN_COMPILED`` is 0 or there is no compiler."""
    if os.environ.get("TRANSFORMER_PLUGIN_COMPILED", "1") == "0":
        return None
    return _load("kernels", SOURCES, _OPTIMISED)


@_once
def operators() -> Any | None:
    """The operators of ``csrc/torch/``, which call torch's; None if there are no ``kernels()``, or
    these cannot be compiled."""
    if kernels() is None:
        return None
    installed = Path(torch.__file__).parent
    flags = ["-std=c++20", "-O2", f"-I{installed / 'include'}"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}")
    libraries = [f"-L{installed / 'lib'}", "-lc10", "-ltorch_cpu"]
    loaded = _load("operators", OPERATORS, flags, libraries)
    return loaded and torch.ops.transformer_plugin


def _load(
    name: str, sources: Sequence[Path], flags: Sequence[str], libraries: Sequence[str] = ()
) -> ctypes.CDLL | None:
    machine = repr((torch.__version__, platform.machine(), processor.features()))
    flags = ["-shared", "-fPIC", *flags]
    try:
        return shared_library.load(name, sources, HEADERS, flags, machine, libraries)
    except OSError as error:
        logger.warning("continuing without compiled %s, which is slower: %s", name, error)
        return None
