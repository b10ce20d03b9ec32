"""Says in one line why training cannot start from a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..checkpoint_error import CheckpointError
from ..checkpoints.model_building import in_one_line, reported_in_one_line
from ..checkpoints.safe_loading import load
from .fine_tuning import check_model


@contextlib.contextmanager
def explained(filename: str, model: Any) -> Iterator[None]:
    """Context in which fairseq loads a checkpoint; every exception becomes one of a line.

    Args:
        model: settings of the model to train.
    """
    try:
        yield
    except (CheckpointError, OSError):
        raise
    except SystemExit as error:
        raise SystemExit(f"{filename}: {error}") from None
    except Exception as error:  # fairseq hides why the model does not load
        if "Cannot load model parameters" in str(error):
            check_model(filename, load(filename), model)
            raise SystemExit(f"{filename}: {in_one_line(error.__context__)}") from None
        with reported_in_one_line(filename):
            raise
