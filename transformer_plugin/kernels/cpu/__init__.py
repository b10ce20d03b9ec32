"""Kernels for CPUs: compiled C++ (``csrc/``), and what oneDNN and MKL do faster than torch."""

from . import adam, attention, candidates, decoder_cache, dropout, linear, residual  # noqa: F401
from . import decoding_weights, products  # noqa: F401
