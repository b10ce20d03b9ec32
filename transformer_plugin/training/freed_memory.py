"""Memory that was freed stays with the process, as the next step of training asks for it again."""

from __future__ import annotations

import ctypes

# Of glibc's malloc.h. It gives large blocks back to the system at once, which hands them out anew
# page by page: thousands of page faults a step.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1
_LARGEST = 32 << 20  # that glibc takes


def keep_freed_memory() -> bool:
    """Tells the C library to keep what is freed; whether it can be told."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _NEVER) and mallopt(_MMAP_THRESHOLD, _LARGEST))
