"""The Transformer of Vaswani et al., "Attention Is All You Need", NeurIPS 2017
(https://arxiv.org/abs/1706.03762), as a fairseq plugin.

When fairseq imports this package as ``--user-dir``, its components are registered, and fairseq can
read its own checkpoints on torch 2.6 and newer. In Python, ``transformer_plugin.load("runs/toy")``
is a trained model that translates raw text. Otherwise the package imports nothing: to use it
through fairseq's own functions, import fairseq first.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .translation.translation_model import TranslationModel, load

__all__ = ["TranslationModel", "load"]

if "fairseq" in sys.modules:
    from . import components  # noqa: F401
    from .checkpoints.fairseq_loading import protect_loading
    from .task import VaswaniTranslationTask
    from .training.fine_tuning import check_bases_of_all_tasks
    from .training.protection import protect_training

    protect_loading()
    check_bases_of_all_tasks()
    VaswaniTranslationTask.before_setup = staticmethod(protect_training)


def __getattr__(name: str) -> Any:
    """Imports ``load`` and ``TranslationModel``, and with them fairseq, on first use. Undoes the
    DEBUG level that some of fairseq's models set on the root logger, and hides the deprecation
    warnings of its imports."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import logging
    import warnings

    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from .translation import translation_model
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
    return getattr(translation_model, name)
