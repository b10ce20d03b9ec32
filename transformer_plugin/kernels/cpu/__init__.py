"""CPU kernels: compiled C++ (``csrc/``), and oneDNN and MKL where they are faster than torch."""

from . import packed_linear  # noqa: F401 - tried before linear.py, whose products have no packed copy

# isort: split
from . import (  # noqa: F401
    adam,
    attention,
    candidates,
    decoder_cache,
    decoder_layers,
    dropout,
    linear,
    products,
)
