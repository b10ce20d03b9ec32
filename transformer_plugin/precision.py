"""bf16 on CPUs and GPUs."""

from __future__ import annotations

from argparse import Namespace


def bf16_without_tpu(args: Namespace) -> None:
    """Undoes that fairseq takes ``--bf16`` for a TPU, which then crashes without one."""
    if getattr(args, "bf16", False):
        args.tpu = False
