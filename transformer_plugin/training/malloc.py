"""Settings of the C library's allocator for training on a CPU."""

from __future__ import annotations

import ctypes

# Parameters of mallopt in glibc's malloc.h. By default glibc returns large blocks to the system at
# once; the next step of training gets them back page by page, with thousands of page faults.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1
_LARGEST = 32 << 20  # upper limit of M_MMAP_THRESHOLD, in bytes
_DEFAULT = 128 << 10  # glibc's M_MMAP_THRESHOLD, which it raises unless it is set


def map_tensors() -> bool:
    """Until ``disable_trimming``, maps each new tensor of 128 KiB or more on its own, unless it
    fits into a gap of glibc's heap. Weights and moments, which stay, would otherwise lie between
    activations and leave gaps that few later tensors fit into.

    Returns:
        See ``disable_trimming``.
    """
    return _set({_MMAP_THRESHOLD: _DEFAULT})


def disable_trimming() -> bool:
    """Returns free memory to the system once, and from then on keeps freed memory in the process.

    Returns:
        Whether the C library has these settings: glibc does, others may not.
    """
    return _set({_TRIM_THRESHOLD: _NEVER, _MMAP_THRESHOLD: _LARGEST})


def _set(parameters: dict[int, int]) -> bool:
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    trim(0)  # frees, for example, a model's float32 weights after rounding
    return all(mallopt(name, value) for name, value in parameters.items())
