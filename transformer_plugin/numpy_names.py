"""Restores a name that fairseq uses and numpy 2 no longer has."""

import types

import numpy


def restore_names() -> None:
    """Restores numpy's ``compat.long``: ``--sample-break-mode eos``, with which language models are
    trained, needs it."""
    if not hasattr(numpy, "compat"):
        numpy.compat = types.SimpleNamespace(long=int)  # type: ignore[attr-defined]
