"""GPU kernels: attention without padding, and decoding steps as CUDA graphs."""

from . import cuda_graph, varlen_attention  # noqa: F401
