"""GPU kernels: attention without padding, packing on the host, decoding steps as CUDA graphs."""

from . import cuda_graph, host_packing, varlen_attention  # noqa: F401
