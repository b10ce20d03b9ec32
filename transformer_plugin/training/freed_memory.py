"""Memory that a step of training frees stays with the process, for the next step."""

from __future__ import annotations

import ctypes

# Of glibc's malloc.h. It gives large blocks back to the system at once, which hands them out anew
# page by page: thousands of page faults a step.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1
_LARGEST = 32 << 20  # that glibc takes


def keep_freed_memory() -> bool:
    """Gives back what is free by now (a model's weights before they were rounded, say), and tells
    the C library to keep what is freed from now on; whether it can be told."""
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return False
    trim(0)
    return bool(mallopt(_TRIM_THRESHOLD, _NEVER) and mallopt(_MMAP_THRESHOLD, _LARGEST))
