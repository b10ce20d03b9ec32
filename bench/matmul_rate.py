"""The machine's speed in matrix products, for comparison with a training step."""

from __future__ import annotations

import time

import torch

from transformer_plugin.modules.products import product_type

# Rows of the matrices, and number of products: enough to reach the full speed of the device.
SIZES = {"cpu": (2048, 4), "cuda": (8192, 40)}


def matmul_rate(precision: torch.dtype, device: str) -> float:
    """FLOPs per second of ``torch.mm`` of two square matrices.

    Like the plugin, it multiplies bf16 matrices in fp32 if that is faster.
    """
    wanted = product_type(torch.empty(1, 1, dtype=precision, device=device))
    size, repeats = SIZES[device]
    left, right = (torch.randn(size, size, device=device).to(wanted) for _ in range(2))
    torch.mm(left, right)
    _wait(device)
    started = time.perf_counter()
    for _ in range(repeats):
        torch.mm(left, right)
    _wait(device)
    return repeats * 2 * size**3 / (time.perf_counter() - started)


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
