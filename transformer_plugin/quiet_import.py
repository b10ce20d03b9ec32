"""Imports fairseq without its marks on a user's own process."""

import importlib
import logging
import warnings
from types import ModuleType


def translation_model() -> ModuleType:
    """``translation.translation_model``. Some of fairseq's models set the root logger to DEBUG, and
    what it imports warns of its own age: neither lasts."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(f"{__package__}.translation.translation_model")
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
