"""The machine's speed in matrix products, for comparison with a training step."""

from __future__ import annotations

import time

import torch

from transformer_plugin.modules.products import product_type

SIZE = 2048
PRODUCTS = 4  # on a CPU; a GPU takes more to fill the time


def matmul_rate(precision: torch.dtype, device: str) -> float:
    """FLOPs per second of ``torch.mm`` of two square matrices of 2048 rows.

    Like the plugin, it multiplies bf16 matrices in fp32 if that is faster.
    """
    wanted = product_type(torch.empty(1, 1, dtype=precision, device=device))
    left, right = (torch.randn(SIZE, SIZE, device=device).to(wanted) for _ in range(2))
    repeats = PRODUCTS if device == "cpu" else 100 * PRODUCTS
    torch.mm(left, right)
    _wait(device)
    started = time.perf_counter()
    for _ in range(repeats):
        torch.mm(left, right)
    _wait(device)
    return repeats * 2 * SIZE**3 / (time.perf_counter() - started)


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
