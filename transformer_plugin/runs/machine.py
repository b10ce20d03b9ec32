"""The commit, package versions and hardware that a stage runs with."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from .. import processor

REPO = Path(__file__).resolve().parents[2]
GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvmap", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, WSL
PACKAGES = (
    *("torch", "fairseq-fixed", "numpy", "sentencepiece", "subword-nmt", "sacremoses"),
    *("sacrebleu", "transformer-plugin"),
)


def code() -> dict[str, Any]:
    """The commit of the repository, and whether tracked files differ from it; None if unknown."""
    git = ("git", "-c", "safe.directory=*")  # also if another user owns the files
    commit = _printed(*git, "rev-parse", "HEAD")
    changes = _printed(*git, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "changed": None if changes is None else changes != ""}


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages; None for a package that is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def hardware() -> dict[str, Any]:
    """Host, processor, memory and GPUs."""
    query = "--query-gpu=name,memory.total,driver_version"
    gpus = _printed("nvidia-smi", query, "--format=csv,noheader")
    return {
        "host": platform.node(),
        "cpu": processor.model_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpus": gpus.splitlines() if gpus else [],
    }


def usable_gpus() -> tuple[int, str, int]:
    """The number of GPUs that torch may use, the fastest precision, and the GiB of the smallest.

    torch takes seconds to import, so it is imported only if there is a GPU.
    """
    none = 0, "fp32", 0
    if not any(Path(device).exists() for device in GPU_DEVICES):
        return none
    import torch

    from ..decode_precision import fastest_on_gpu

    if not torch.cuda.is_available():
        if Path(GPU_DEVICES[0]).exists() and os.environ.get("CUDA_VISIBLE_DEVICES") != "":
            print("warning: torch cannot use this machine's GPU, so the CPU is used: see"
                  " transformer-plugin doctor", file=sys.stderr)  # fmt: skip
        return none
    number = torch.cuda.device_count()
    bytes_of = [torch.cuda.get_device_properties(i).total_memory for i in range(number)]
    return number, fastest_on_gpu(), min(bytes_of) >> 30


def _printed(*command: str) -> str | None:
    """The output of a command, without the last line feed; None if it fails or is missing."""
    try:
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.rstrip("\n")
