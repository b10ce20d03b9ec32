"""What the processor is and can do, as the system says. This file needs nothing of the package: the
doctor runs it alone."""

from __future__ import annotations

import functools
import platform
from pathlib import Path


@functools.cache
def features() -> str:
    """Its instruction sets, on which ``-march=native`` depends, as one line."""
    lines = _description().splitlines()
    known = (line for line in lines if line.startswith(("flags", "Features")))
    return next(known, "") if lines else platform.processor()


@functools.cache
def is_amd() -> bool:
    """Whether it is AMD's. MKL is slower on those in float32."""
    return "AuthenticAMD" in _description()


def has_fast_bf16() -> bool:
    """Whether it multiplies bf16 faster than float32: Intel's with AMX, AMD's with AVX-512 BF16.

    Known by what the processor is, not tried, so that each start and each process computes the same
    bits. Intel's AVX-512 BF16 without AMX takes 1.6 times the time of float32.
    """
    known = features().split()
    return "amx_bf16" in known or (is_amd() and "avx512_bf16" in known)


def _description() -> str:
    """Linux's; empty elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
