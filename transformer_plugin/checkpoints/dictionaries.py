"""The dictionaries of the data that a checkpoint was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..binarised_data import infer_languages
from ..checkpoint_error import CheckpointError
from ..dictionary_file import load_dictionary
from ..trained_dictionaries import check_dictionaries
from .sections import section


def languages(state: dict[str, Any], data: str | Path) -> tuple[str, str]:
    """Source and target language: from the checkpoint's task, else from the file names in ``data``.

    Raises:
        FileNotFoundError: neither has them.
    """
    task = section(state["cfg"], "task")
    source, target = task.get("source_lang"), task.get("target_lang")
    if source is None or target is None:  # fairseq-train inferred them from the file names
        source, target = infer_languages(Path(data))
    if source is None or target is None:
        raise FileNotFoundError(
            f"{data}: no binarised data (train.SOURCE-TARGET.SOURCE.idx or similar) that names"
            " the languages; give --data the run's data-bin"
        )
    return source, target


def dictionary_symbols(state: dict[str, Any], data: str | Path) -> dict[str, list[str]]:
    """The symbols of ``encoder`` and ``decoder``, in the order of their ids.

    Args:
        state: a checkpoint; its task names the languages.
        data: a folder with ``dict.SOURCE.txt`` and ``dict.TARGET.txt``.

    Raises:
        FileNotFoundError: a dictionary is missing.
        CheckpointError: a dictionary is not the model's.
        Refusal: a dictionary is damaged.
    """
    symbols = {}
    for side, language in zip(("encoder", "decoder"), languages(state, data), strict=True):
        path = Path(data) / f"dict.{language}.txt"
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such dictionary; give --data the run's data-bin")
        dictionary = load_dictionary(path)
        rows = state["model"][f"{side}.embed_tokens.weight"].size(0)
        if len(dictionary) != rows:
            raise CheckpointError(
                f"{path}: {len(dictionary)} symbols, but the model's {side} has {rows}: give --data"
                " the folder that the model was trained on"
            )
        check_dictionaries(state.get("task_state"), {language: dictionary}, data)
        symbols[side] = list(dictionary.symbols)
    return symbols
