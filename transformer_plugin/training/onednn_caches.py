"""Limits of the caches of oneDNN's compiled kernels, for training on a CPU."""

from __future__ import annotations

import os

import torch

_SHAPES = 32  # of a thread; more than a step has


def limit_caches() -> None:
    """Limits the caches, unless the user has set their variables. Call it before the first product.

    oneDNN compiles a kernel for each new shape. It caches 1,024 of them for all threads, and torch
    as many for each, which take 1 to 2 MB apiece; in training most shapes come once.
    """
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(_SHAPES))  # torch's
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_SHAPES * torch.get_num_threads()))
