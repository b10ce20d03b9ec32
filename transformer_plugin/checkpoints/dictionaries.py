"""The dictionaries of the data that a checkpoint was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from .safe_loading import CheckpointError


def dictionary_symbols(state: dict[str, Any], data: str | Path) -> dict[str, list[str]]:
    """The symbols of ``encoder`` and ``decoder``, in the order of their numbers.

    Args:
        state: a checkpoint; its task names the languages.
        data: a folder with ``dict.SOURCE.txt`` and ``dict.TARGET.txt``.

    Raises:
        FileNotFoundError: a dictionary is missing.
        CheckpointError: a dictionary is not the model's.
    """
    task = state["cfg"]["task"]
    found = {}
    for side, language in (("encoder", task["source_lang"]), ("decoder", task["target_lang"])):
        path = Path(data) / f"dict.{language}.txt"
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such dictionary; give --data the run's data-bin")
        symbols = list(Dictionary.load(str(path)).symbols)
        rows = state["model"][f"{side}.embed_tokens.weight"].size(0)
        if len(symbols) != rows:
            raise CheckpointError(
                f"{path}: {len(symbols)} symbols, the model's {side} knows {rows}: give --data the"
                " folder that the model was trained on"
            )
        found[side] = symbols
    return found
