"""Checks the installed packages, the hardware and the compiler."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from .finding import NOTE, OK, PROBLEM, Finding

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

FAIRSEQ = ("fairseq-fixed", "0.12.3.1")
PACKAGES = ("numpy", "omegaconf", "hydra-core", "sentencepiece", "sacrebleu", "sacremoses")


def find_in_environment() -> Iterator[Finding]:
    """Checks the environment."""
    yield from _python()
    yield from _torch()
    yield from _fairseq()
    yield from _packages()
    if torch is not None:
        yield from _accelerator()
        yield from _apex()
        yield from _kernels()


def _python() -> Iterator[Finding]:
    version = platform.python_version()
    if (3, 11) <= sys.version_info < (3, 14):
        yield Finding(OK, f"Python {version}")
    else:
        yield Finding(NOTE, f"Python {version} is not tested", "use Python 3.11, 3.12 or 3.13")


def _torch() -> Iterator[Finding]:
    if torch is None:
        yield Finding(PROBLEM, "torch is missing or does not import", "pip install 'torch>=2.4'")
        return
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    if (major, minor) < (2, 4):
        yield Finding(PROBLEM, f"torch {torch.__version__} is too old", "pip install 'torch>=2.4'")
    else:
        yield Finding(OK, f"torch {torch.__version__}")


def _fairseq() -> Iterator[Finding]:
    name, wanted = FAIRSEQ
    installed = _version(name)
    remedy = f"pip uninstall -y fairseq; pip install --no-build-isolation {name}=={wanted}"
    if installed == wanted:
        yield Finding(OK, f"{name} {installed}")
    elif installed:
        yield Finding(NOTE, f"{name} {installed}, tested with {wanted}", remedy)
    elif _version("fairseq"):
        yield Finding(
            PROBLEM,
            f"fairseq {_version('fairseq')} does not import on Python 3.11 or newer",
            remedy,
        )
    else:
        yield Finding(PROBLEM, "fairseq is missing", remedy)
        return
    try:
        importlib.import_module("fairseq")
    except Exception as error:  # any failure is a finding
        yield Finding(PROBLEM, f"fairseq does not import: {error}", remedy)


def _packages() -> Iterator[Finding]:
    pins = _pins(FAIRSEQ[0])
    for package in PACKAGES:
        version, pin = _version(package), pins.get(package)
        wanted = f"{package}=={pin}" if pin else package
        if version is None:
            yield Finding(PROBLEM, f"{package} is missing", f"pip install {wanted}")
        elif pin and version != pin:
            text = f"{package} {version} is not the {pin} that fairseq needs"
            yield Finding(PROBLEM, text, f"pip install {wanted}")
        else:
            yield Finding(OK, f"{package} {version}")


def _accelerator() -> Iterator[Finding]:
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(i)
            memory = properties.total_memory / 2**30
            # Below compute capability 8.0 bf16 is emulated, and slow.
            fast = "--bf16 or --fp16" if properties.major >= 8 else "--fp16"
            if _has_kernels_for(properties.major, properties.minor):
                yield Finding(OK, f"GPU {i}: {properties.name}, {memory:.0f} GiB; use {fast}")
            else:
                yield _no_kernels(f"GPU {i}: {properties.name}", properties)
        return
    cores, busy = os.cpu_count() or 1, os.getloadavg()[0]
    yield Finding(OK, f"no GPU; {cores} CPU cores, {torch.backends.cpu.get_cpu_capability()}")
    if busy > cores / 2:
        text = f"the load was {busy:.1f} in the last minute: other programs slow training"
        yield Finding(NOTE, text)
    if _multiplies_bf16_faster():
        yield Finding(OK, "the CPU multiplies bf16 faster than fp32: --bf16 is fastest here")
    else:
        text = "the CPU multiplies fp32 faster than bf16: --bf16 saves memory, not time"
        yield Finding(NOTE, text)
    if _driver_lists_gpus():
        reason, remedy = "cannot use it", "update its driver, or install a torch for an older CUDA"
        if torch.version.cuda is None:
            reason, remedy = "is a CPU build", "install torch with CUDA"
        yield Finding(PROBLEM, f"there is an NVIDIA GPU, but torch {reason}", remedy)


def _driver_lists_gpus() -> bool:
    """Whether there are NVIDIA GPUs, which CUDA_VISIBLE_DEVICES does not hide."""
    if not shutil.which("nvidia-smi") or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return False
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return done.returncode == 0 and "GPU" in done.stdout


def _has_kernels_for(major: int, minor: int) -> bool:
    """Whether torch was built for this compute capability.

    Machine code (``sm_86``) runs on later GPUs of the same generation, PTX (``compute_86``) on all
    later ones, and what ends in a letter (``sm_90a``) on that GPU alone.
    """
    built = [re.fullmatch(r"(sm|compute)_(\d+)(\d)([a-z]?)", a) for a in torch.cuda.get_arch_list()]
    for kind, own_major, own_minor, letter in (match.groups() for match in built if match):
        own = int(own_major), int(own_minor)
        if (major, minor) == own or (
            not letter and own <= (major, minor) and (kind == "compute" or own[0] == major)
        ):
            return True
    return torch.version.hip is not None  # AMD's architectures have other names


def _no_kernels(gpu: str, properties: Any) -> Finding:
    major, minor = properties.major, properties.minor
    has = ", ".join(torch.cuda.get_arch_list()) or "none"
    text = f"{gpu} has compute capability {major}.{minor}, and torch has no kernels for it ({has})"
    old = "pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cu126"
    return Finding(PROBLEM, text, old if (major, minor) < (7, 5) else "pip install --upgrade torch")


def _apex() -> Iterator[Finding]:
    if importlib.util.find_spec("apex") is None:
        if torch.cuda.is_available():
            yield Finding(NOTE, "apex is not installed; torch's own fused Adam is used")
    elif importlib.util.find_spec("amp_C") is None:
        yield Finding(
            PROBLEM,
            "the package 'apex' here is not NVIDIA's: it is an unrelated package from PyPI",
            "pip uninstall apex; NVIDIA's is built from https://github.com/NVIDIA/apex",
        )
    else:
        yield Finding(OK, "NVIDIA apex")


def _kernels() -> Iterator[Finding]:
    plain = "attention and Adam: the plain functions of modules/, which are slower"
    if not importlib.util.find_spec("transformer_plugin.kernels"):
        yield Finding(NOTE, f"{plain}: the plugin has no folder kernels/")
        return
    if os.environ.get("TRANSFORMER_PLUGIN_KERNELS") == "0":
        text = f"{plain}: TRANSFORMER_PLUGIN_KERNELS is 0"
        yield Finding(NOTE, text, "unset TRANSFORMER_PLUGIN_KERNELS")
        return
    if not torch.cuda.is_available():
        yield _compiled_kernels()
        return
    weight = torch.nn.Parameter(torch.zeros(1, device="cuda"))
    weight.grad = torch.ones_like(weight)
    try:
        torch.optim.AdamW([weight], fused=True).step()
        yield Finding(OK, "Adam: torch's fused step on cuda")
    except RuntimeError as error:
        text = f"torch's fused Adam, which vaswani_adam uses, does not run on cuda: {error}"
        yield Finding(PROBLEM, text, "pip install --upgrade torch")
    names = ("flash", "mem_efficient", "math", "cudnn")
    enabled = [n for n in names if getattr(torch.backends.cuda, f"{n}_sdp_enabled")()]
    yield Finding(OK, f"attention: torch's SDPA ({', '.join(enabled)})")


def _compiled_kernels() -> Finding:
    """Whether the plugin's C++ kernels load; the first time they are compiled."""
    slower = "attention and Adam on the CPU: torch's, which are slower"
    name = "TRANSFORMER_PLUGIN_COMPILED"
    if os.environ.get(name) == "0":
        return Finding(NOTE, f"{slower}: {name} is 0", f"unset {name}")
    library = importlib.import_module("transformer_plugin.kernels.cpu.library")
    if library.kernels() is None:  # it has logged why
        text = f"{slower}: the plugin's C++ kernels cannot be compiled or loaded"
        return Finding(NOTE, text, "install g++, or set CXX to your C++ compiler")
    if library.operators() is None:
        text = (
            "decoding on the CPU: slower, above all in int8: the plugin's C++ operators cannot be"
            " compiled or loaded"
        )
        return Finding(NOTE, text, "use a C++20 compiler, such as g++ 10 or newer")
    text = "attention and Adam on the CPU: the plugin's C++ kernels, compiled for this machine"
    return Finding(OK, text)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _pins(package: str) -> dict[str, str]:
    """The exact versions that an installed package requires."""
    try:
        asked = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    matches = (re.match(r"([\w-]+) ?==([\w.]+)$", line) for line in asked)
    return {match.group(1): match.group(2) for match in matches if match}


def _multiplies_bf16_faster() -> bool:
    """Whether bf16 products are computed in bf16 on this machine; always without the kernels."""
    if importlib.util.find_spec("transformer_plugin.kernels"):
        importlib.import_module("transformer_plugin.kernels")
    from ..modules.products import product_type

    return product_type(torch.empty(1, dtype=torch.bfloat16)) == torch.bfloat16
