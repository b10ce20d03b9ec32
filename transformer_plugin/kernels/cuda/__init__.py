"""GPU kernels: attention without padding, packing on the host, decoding steps as CUDA graphs, the
choice of the likeliest tokens. No gain has been measured on a GPU yet: ``bench/gpu.sh`` does that,
and ``bench/kernels.py --device cuda --precision bf16`` for each kernel."""

from . import candidates, cuda_graph, host_packing, varlen_attention  # noqa: F401
