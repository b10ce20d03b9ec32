"""The files of a model of subwords.py."""

from __future__ import annotations

from pathlib import Path

from steps.errors import BadInput

KINDS = ("sentencepiece", "moses-bpe", "words")
MODEL, CODES, VOCABULARY = "joint.model", "joint.codes", "joint.vocab"


def model_files(folder: Path) -> list[Path]:
    """The files of the model in `folder`; BadInput if there is none."""
    for name in (MODEL, CODES):
        if (folder / name).is_file():
            return [folder / name, folder / VOCABULARY]
    if (folder / VOCABULARY).is_file():  # a model of kind "words"
        return [folder / VOCABULARY]
    raise BadInput(f"{folder / MODEL} is missing: learn it with data-prep/subwords.py first")
