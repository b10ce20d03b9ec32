"""Kernels for CPUs: compiled C++ (``csrc/``), and what oneDNN and MKL do faster than torch."""

from . import (  # noqa: F401
    adam,
    attention,
    candidates,
    decoder_cache,
    decoding_weights,
    dropout,
    linear,
    products,
    residual,
)
