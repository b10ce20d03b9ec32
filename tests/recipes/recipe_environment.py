"""What the tests start recipes in."""

import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def environment(**knobs):
    """What recipes/ run in: this Python's programs, and an experiment's numbers."""
    return os.environ | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "CUDA_VISIBLE_DEVICES": "",
        "VIRTUAL_ENV": str(BIN.parent),
        "PYTHONPATH": f"{REPO}:{os.environ.get('PYTHONPATH', '')}",
    } | knobs
