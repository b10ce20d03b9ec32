"""Checks that data has the dictionaries that a model was trained with.

A dictionary of the same size but with other words, or with the same words in another order, fits
the shapes of the model: without this check its translations would be nonsense.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationTask

from .checkpoint_error import CheckpointError
from .dictionary_file import load_dictionary

_NAME = "dictionaries"  # in a checkpoint's task_state


def dictionary_state(dictionaries: Mapping[str, Dictionary]) -> dict[str, Any]:
    """What a checkpoint stores about its dictionaries: the number of symbols, and their sha256 in
    order.

    Args:
        dictionaries: by language.
    """
    return {
        _NAME: {
            language: {
                "symbols": len(dictionary),
                "sha256": hashlib.sha256("\n".join(dictionary.symbols).encode()).hexdigest(),
            }
            for language, dictionary in dictionaries.items()
        }
    }


def check_dictionaries(
    task_state: Mapping[str, Any] | None, dictionaries: Mapping[str, Dictionary], data: object
) -> None:
    """Compares dictionaries with those of the same size that a checkpoint was trained with. For
    another size the model itself refuses the checkpoint, and names both sizes.

    Args:
        task_state: the checkpoint's; that of another program says nothing about dictionaries.
        dictionaries: by language. A language that the model does not know is not compared.
        data: their folder, for the message.

    Raises:
        CheckpointError: a dictionary differs.
    """
    trained = (task_state or {}).get(_NAME) or {}
    for language, found in dictionary_state(dictionaries)[_NAME].items():
        known = trained.get(language, found)
        if known["symbols"] == found["symbols"] and known != found:
            raise CheckpointError(
                f"the model was trained with another dictionary than {data}/dict.{language}.txt,"
                " perhaps before the data was prepared again: give it the data that it was"
                " trained on, or train anew in another folder"
            )


class TrainedDictionaries(TranslationTask):
    """A translation task whose checkpoints keep what identifies its dictionaries."""

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """As in fairseq, with an error that names the file."""
        return load_dictionary(filename)

    def dictionaries(self) -> dict[str, Dictionary]:
        """The dictionaries of source and target, by language."""
        languages = (self.cfg.source_lang, self.cfg.target_lang)
        return dict(zip(languages, (self.src_dict, self.tgt_dict), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """What fairseq saves of a task in a checkpoint."""
        return {**super().state_dict(), **dictionary_state(self.dictionaries())}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the task's state from a checkpoint.

        Raises:
            CheckpointError: the checkpoint's model was trained with other dictionaries.
        """
        check_dictionaries(state_dict, self.dictionaries(), self.cfg.data)
        super().load_state_dict(state_dict)
