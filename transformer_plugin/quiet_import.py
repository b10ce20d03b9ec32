"""Imports fairseq without side effects on the user's process."""

import importlib
import logging
import warnings
from types import ModuleType


def translation_model() -> ModuleType:
    """Imports ``translation.translation_model``. Undoes the DEBUG level that some of fairseq's
    models set on the root logger, and hides deprecation warnings of its imports."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(f"{__package__}.translation.translation_model")
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
