"""Kernels for CPUs: compiled C++ (``csrc/``), and what oneDNN and MKL do faster than torch."""

from . import (  # noqa: F401
    attention,
    candidates,
    decoder_cache,
    dropout,
    linear,
    packed_linear,
    products,
)
