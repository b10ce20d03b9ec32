"""The Transformer of Vaswani et al., "Attention Is All You Need", NeurIPS 2017
(https://arxiv.org/abs/1706.03762), as a fairseq plugin.

When fairseq imports this package as ``--user-dir``, its components are registered, and fairseq can
read its own checkpoints on torch 2.6 and newer. Without fairseq the package imports nothing.
"""

import sys

if "fairseq" in sys.modules:
    from . import components  # noqa: F401
    from .checkpoints.fairseq_loading import protect_loading
    from .numpy_names import restore_names
    from .task import VaswaniTranslationTask
    from .training.protection import protect_training

    restore_names()
    protect_loading()
    VaswaniTranslationTask.before_setup = staticmethod(protect_training)
