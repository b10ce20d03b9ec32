"""Raw sentences to subwords and back, by the models that recipes/prepare.sh learns.

Sentences are brought to the form that data-prep/clean.py gave the training text; what the form is,
``clean/report.json`` says. A test compares both with data-prep itself.
"""

from __future__ import annotations

import json
import unicodedata
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import sentencepiece
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from subword_nmt.apply_bpe import BPE

_MODEL, _CODES = "joint.model", "joint.codes"  # data-prep/subwords.py writes one of them
_WORD_START, _WORD_GOES_ON = "▁", "@@"
_LONGEST_WORD = 500  # characters: subword-nmt's time is quadratic in them


class Subwords(ABC):
    """One kind of subwords.

    Args:
        lowercase: sentences are made lower case first.
    """

    def __init__(self, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    def split(self, sentence: str) -> list[str]:
        """The pieces of a sentence; none of an empty one."""
        words = " ".join(unicodedata.normalize("NFC", sentence).split())
        return self._pieces(words)

    @abstractmethod
    def _pieces(self, words: str) -> list[str]:
        """The pieces of normalised text."""

    @abstractmethod
    def join(self, pieces: list[str]) -> str:
        """The text of pieces."""

    @abstractmethod
    def begins_word(self, piece: str, before: str) -> bool:
        """Whether a new word begins at ``piece``, which follows ``before``."""


class SentencePieces(Subwords):
    """sentencepiece's: the first piece of a word begins with ``▁``."""

    def __init__(self, model: Path, lowercase: bool = False) -> None:
        super().__init__(lowercase)
        try:
            self.model = sentencepiece.SentencePieceProcessor(model_file=str(model))
        except (RuntimeError, OSError):
            raise ValueError(f"{model} is not a sentencepiece model: learn it again") from None

    def _pieces(self, words: str) -> list[str]:
        words = words.lower() if self.lowercase else words
        return [piece for word in words.split() for piece in self.model.encode(word, out_type=str)]

    def join(self, pieces: list[str]) -> str:
        """Pieces without gaps, and a space for each ``▁``."""
        return "".join(pieces).replace(_WORD_START, " ").strip()

    def begins_word(self, piece: str, before: str) -> bool:
        """Whether it has the mark."""
        return piece.startswith(_WORD_START)


class MosesPieces(Subwords):
    """subword-nmt's, of Moses' tokens: all pieces of a word but the last end in ``@@``."""

    def __init__(self, codes: Path, source: str, target: str, lowercase: bool = False) -> None:
        super().__init__(lowercase)
        with codes.open(encoding="utf-8") as file:
            self.bpe = BPE(file)
        self.normaliser, self.tokeniser = MosesPunctNormalizer(source), MosesTokenizer(source)
        self.detokeniser = MosesDetokenizer(target)

    def _pieces(self, words: str) -> list[str]:
        text = self.tokeniser.tokenize(self.normaliser.normalize(words), return_str=True)
        text = text.lower() if self.lowercase else text
        short = (
            word[i : i + _LONGEST_WORD]
            for word in text.split()
            for i in range(0, len(word), _LONGEST_WORD)
        )
        return self.bpe.segment_tokens(short)

    def join(self, pieces: list[str]) -> str:
        """Whole words, detokenised."""
        words = f"{' '.join(pieces)} ".replace(f"{_WORD_GOES_ON} ", "")
        return self.detokeniser.detokenize(words.split())

    def begins_word(self, piece: str, before: str) -> bool:
        """Whether the piece before ended a word."""
        return not before.endswith(_WORD_GOES_ON)


@dataclass(frozen=True)
class Prepared:
    """What recipes/prepare.sh left beside a ``data-bin``.

    Attributes:
        subwords: the folder of the model.
        lowercase: whether the text was made lower case.
    """

    subwords: Path
    lowercase: bool = False

    @classmethod
    def beside(cls, data: Path) -> Prepared:
        """What belongs to ``data``; how it was cleaned, if the report is there."""
        run = data.resolve().parent
        report = run / "clean" / "report.json"
        form = {}
        if report.is_file():
            form = json.loads(report.read_text(encoding="utf-8")).get("form", {})
        return cls(run / "subwords", bool(form.get("lowercase")))


def load_subwords(folder: Path, source: str, target: str, lowercase: bool = False) -> Subwords:
    """The model in ``folder``, of either kind, for sentences of ``source``.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged.
    """
    if (folder / _MODEL).is_file():
        return SentencePieces(folder / _MODEL, lowercase)
    if (folder / _CODES).is_file():
        return MosesPieces(folder / _CODES, source, target, lowercase)
    raise FileNotFoundError(
        f"{folder}: holds neither {_MODEL} nor {_CODES}; name the folder that recipes/prepare.sh"
        " calls runs/EXPERIMENT/subwords by --subwords"
    )
