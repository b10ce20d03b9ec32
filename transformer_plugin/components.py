"""Registers all components with fairseq, and mends what keeps fairseq from training with today's
numpy and torch: importing this file is enough.

``fairseq-train --user-dir`` imports it with the package. A program that builds the plugin's models
or tasks through fairseq imports this file itself.
"""

import importlib.util
import sys
from pathlib import Path

from fairseq.models import MODEL_REGISTRY

from .refusal import Refusal

_known = MODEL_REGISTRY.get("vaswani_transformer")
if _known is not None and _known.__module__.rpartition(".")[0] != __package__:
    _first, _second = (
        Path(sys.modules[name].__file__ or "").parent for name in (_known.__module__, __name__)
    )
    raise Refusal(f"the plugin is already imported from {_first}: remove {_second}")

from . import adam, architectures, criterion, noam, task  # noqa: E402, F401
from .bf16 import expect_no_tpu  # noqa: E402
from .numpy_names import restore_names  # noqa: E402

expect_no_tpu()
restore_names()

if importlib.util.find_spec(".kernels", __package__):  # the folder may be missing
    from . import kernels  # noqa: F401
