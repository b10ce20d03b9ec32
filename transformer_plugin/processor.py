"""The processor's name and features, as reported by Linux."""

from __future__ import annotations

import functools
import platform
from pathlib import Path


def model_name() -> str:
    """The model name, such as "AMD EPYC 9R14"; the architecture if it is not known."""
    return _entry("model name") or platform.machine()


@functools.cache
def features() -> str:
    """The instruction sets, on which ``-march=native`` depends, in one line."""
    return _entry("flags", "Features") or platform.processor()


@functools.cache
def is_amd() -> bool:
    """Whether the processor is AMD's."""
    return _entry("vendor_id") == "AuthenticAMD"


@functools.cache
def has_slow_mkl() -> bool:
    """Whether MKL's float32 products are slower than oneDNN's in training: AMD with AVX-512. With
    AVX2 alone MKL is a tenth faster."""
    return is_amd() and "avx512f" in features().split()


@functools.cache
def has_avx2() -> bool:
    """Whether the processor has AVX2, perhaps AVX-512 too."""
    return "avx2" in features().split()


@functools.cache
def has_fast_bf16() -> bool:
    """Whether bf16 products are faster than float32: Intel with AMX, AMD with AVX-512 BF16.

    This depends only on the processor's features, not on timing, so that every process computes the
    same bits. Intel's AVX-512 BF16 without AMX takes 1.6 times as long as float32.
    """
    known = features().split()
    return "amx_bf16" in known or (is_amd() and "avx512_bf16" in known)


def _entry(*names: str) -> str:
    """The value of the first such line in /proc/cpuinfo; empty if there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    entries = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in entries if name.strip() in names), "")
