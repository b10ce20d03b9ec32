"""CPU kernels: compiled C++ (``csrc/``), and oneDNN and MKL where they are faster than torch."""

from . import (  # noqa: F401
    attention,
    candidates,
    decoder_cache,
    dropout,
    linear,
    packed_linear,
    products,
)
