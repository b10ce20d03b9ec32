"""GPU kernels: attention without padding, packing on the host, decoding steps as CUDA graphs, the
choice of the likeliest tokens."""

from . import candidates, cuda_graph, host_packing, varlen_attention  # noqa: F401
