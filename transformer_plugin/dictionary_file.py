"""Reads fairseq's dictionaries, ``dict.LANGUAGE.txt``, with errors that name the file."""

from __future__ import annotations

from pathlib import Path

from fairseq.data import Dictionary

from .refusal import Refusal


def load_dictionary(path: str | Path) -> Dictionary:
    """The dictionary in a file that has a symbol and its count in each line.

    Raises:
        FileNotFoundError: there is no such file.
        Refusal: it is not a dictionary; the message names the file, and quotes the line if it can.
    """
    try:
        return Dictionary.load(str(path))
    except OSError:
        raise
    except Exception as error:  # the exception depends on the damage
        raise Refusal(
            f"{path}: not a dictionary of fairseq ({error}): prepare the data again"
        ) from None
