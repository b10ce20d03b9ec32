"""A name that fairseq uses and that numpy 2 no longer has."""

import types

import numpy


def restore_names() -> None:
    """Gives numpy ``compat.long`` back: ``--sample-break-mode eos``, by which language models are
    trained, needs it."""
    if not hasattr(numpy, "compat"):
        numpy.compat = types.SimpleNamespace(long=int)  # type: ignore[attr-defined]
