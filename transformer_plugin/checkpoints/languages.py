"""A model translates only in the direction for which it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .safe_loading import CheckpointError


def check_languages(name: str, state: Mapping[str, Any], source: str, target: str) -> None:
    """Compares the languages asked for with those of the checkpoint's training, where it names
    them: with a joint dictionary the wrong ones load all the same, and give nonsense.

    Args:
        name: of the checkpoint, for the message.
        state: its contents.

    Raises:
        CheckpointError: they differ.
    """
    args, cfg = state.get("args"), state.get("cfg")
    trained = vars(args) if args is not None else (cfg or {}).get("task") or {}
    asked = {"source_lang": source, "target_lang": target}
    known = {side: trained.get(side) or language for side, language in asked.items()}
    if known != asked:
        right = "-s {source_lang} -t {target_lang}".format_map(known)
        raise CheckpointError(
            f"{name}: trained to translate {' to '.join(known.values())}, not {source} to {target}:"
            f" give {right}, and data of this direction"
        )
