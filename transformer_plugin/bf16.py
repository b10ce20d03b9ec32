"""``--bf16`` without a TPU."""

from __future__ import annotations

import functools
from typing import Any

from fairseq import options


def expect_no_tpu() -> None:
    """Makes fairseq's commands train on a GPU or CPU with ``--bf16``. They expect a TPU, and crash
    without one. A second call changes nothing."""
    parse = options.parse_args_and_arch
    if hasattr(parse, "__wrapped__"):
        return

    @functools.wraps(parse)
    def parse_without_tpu(*arguments: Any, **more: Any) -> Any:
        parsed = parse(*arguments, **more)
        args = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(args, "bf16", False):
            args.tpu = False
        return parsed

    options.parse_args_and_arch = parse_without_tpu
