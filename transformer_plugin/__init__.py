"""The Transformer of Vaswani et al., "Attention Is All You Need", NeurIPS 2017
(https://arxiv.org/abs/1706.03762), as a fairseq plugin.

Importing this package registers its components with fairseq and lets fairseq read its own
checkpoints again; it does nothing else.
"""

import importlib.util

from . import adam, criterion, model, noam, presets, task  # noqa: F401
from .checkpoints.safe_loading import allow_fairseq_types

allow_fairseq_types()
if importlib.util.find_spec(".kernels", __name__):  # a folder that may be missing
    from . import kernels  # noqa: F401
