"""Checks that a model was trained for the requested direction of translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .checkpoint_error import CheckpointError


def check_languages(name: str, trained: Mapping[str, Any] | None, source: str, target: str) -> None:
    """Compares the requested languages with those of training, if these are known.

    With a joint dictionary a model loads for any languages, but its translations are nonsense.

    Args:
        name: the checkpoint's name, for the message.
        trained: the options of the task in the checkpoint, if it has them.

    Raises:
        CheckpointError: the languages differ.
    """
    asked = {"source_lang": source, "target_lang": target}
    known = {side: (trained or {}).get(side) or language for side, language in asked.items()}
    if known != asked:
        right = "-s {source_lang} -t {target_lang}".format_map(known)
        raise CheckpointError(
            f"{name}: trained to translate {' to '.join(known.values())}, not {source} to {target}:"
            f" give {right}, and data for that direction"
        )
