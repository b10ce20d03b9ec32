"""Splits sentences into subwords and joins them, with the models that recipes/prepare.sh learns.

Sentences are normalised as data-prep/clean.py normalised the training text; its report,
``clean/report.json``, says how. A test compares the results with those of data-prep.
"""

from __future__ import annotations

import json
import unicodedata
from abc import ABC, abstractmethod
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import sentencepiece
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from subword_nmt.apply_bpe import BPE

from ..text_lines import moses_words, words_of

# data-prep/subwords.py writes the last alone for --kind words, else beside one of the others.
_MODEL, _CODES, _VOCABULARY = "joint.model", "joint.codes", "joint.vocab"
_WORD_START, _CONTINUED = "▁", "@@"
_UNSPACED_ENDS = ("。", "！", "？")  # ends of sentences in Chinese and Japanese: no space follows
_SENTENCE_ENDS = (".", "!", "?", *_UNSPACED_ENDS)
_LONGEST_WORD = 500  # characters; subword-nmt takes quadratic time


def cut(word: str) -> list[str]:
    """A word for subword-nmt, in parts that it encodes fast."""
    return [word[i : i + _LONGEST_WORD] for i in range(0, len(word), _LONGEST_WORD)]


class Subwords(ABC):
    """A subword model.

    Args:
        lowercase: convert sentences to lower case first.
    """

    def __init__(self, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    def split(self, sentence: str) -> list[str]:
        """The subwords of a sentence; an empty list for an empty one."""
        words = " ".join(unicodedata.normalize("NFC", sentence).split())
        return self._pieces(words)

    @abstractmethod
    def _pieces(self, words: str) -> list[str]:
        """The subwords of normalised text."""

    def join(self, pieces: list[str]) -> str:
        """The text of subwords, without ``<s>``, which fairseq does not print either: a translation
        drawn at random may have it."""
        return self._text([piece for piece in pieces if piece != "<s>"])

    @abstractmethod
    def _text(self, pieces: list[str]) -> str:
        """The text of subwords."""

    @abstractmethod
    def begins_word(self, piece: str, before: str) -> bool:
        """Whether ``piece``, which follows ``before``, is the beginning of a word."""

    def end_of_part(self, pieces: list[str], longest: int) -> int:
        """The number of subwords, at most ``longest``, to translate as a part of a line that has
        more: up to the end of a sentence, or else of a word."""
        places = range(1, longest + 1)
        words = [i for i in places if self.begins_word(pieces[i], pieces[i - 1])]
        ends = [i for i in words if pieces[i - 1].endswith(_SENTENCE_ENDS)]
        unspaced = [i for i in places if pieces[i - 1].endswith(_UNSPACED_ENDS)]
        ends += [i for i in unspaced if pieces[i][0].isalnum()]  # else a quotation mark follows
        return max(ends or words or [longest])

    def space_after(self, text: str) -> str:
        """What separates the translation of a part of a line from that of the next part."""
        return " "


class SentencePieces(Subwords):
    """sentencepiece: the first subword of a word begins with ``▁``."""

    def __init__(self, model: Path, lowercase: bool = False) -> None:
        super().__init__(lowercase)
        try:
            self.model = sentencepiece.SentencePieceProcessor(model_file=str(model))
        except (RuntimeError, OSError):
            raise ValueError(f"{model} is not a sentencepiece model: learn it again") from None

    def _pieces(self, words: str) -> list[str]:
        words = words.lower() if self.lowercase else words
        return [piece for word in words.split() for piece in self.model.encode(word, out_type=str)]

    def _text(self, pieces: list[str]) -> str:
        """Concatenates the subwords and replaces each ``▁`` by a space."""
        return "".join(pieces).replace(_WORD_START, " ").strip()

    def begins_word(self, piece: str, before: str) -> bool:
        """Whether the subword begins with ``▁``."""
        return piece.startswith(_WORD_START)

    def space_after(self, text: str) -> str:
        """Nothing after a Chinese or Japanese sentence."""
        return "" if text.endswith(_UNSPACED_ENDS) else " "


class MosesPieces(Subwords):
    """subword-nmt on Moses tokens: every subword of a word except the last ends with ``@@``."""

    def __init__(self, codes: Path, language: str, lowercase: bool = False) -> None:
        super().__init__(lowercase)
        try:
            # After a wrong line subword-nmt ends the process; its message does not name the file.
            with codes.open(encoding="utf-8") as file, redirect_stderr(StringIO()):
                self.bpe = BPE(file)
            if not self.bpe.bpe_codes:
                raise ValueError("no merges")
        except (SystemExit, ValueError):
            raise ValueError(
                f"{codes} is not a list of subword-nmt's merges: learn it again"
            ) from None
        self.normaliser, self.tokeniser = MosesPunctNormalizer(language), MosesTokenizer(language)
        self.detokeniser = MosesDetokenizer(language)

    def _pieces(self, words: str) -> list[str]:
        text = self.tokeniser.tokenize(self.normaliser.normalize(words), return_str=True)
        text = text.lower() if self.lowercase else text
        return self.bpe.segment_tokens(short for word in text.split() for short in cut(word))

    def _text(self, pieces: list[str]) -> str:
        """Joins the subwords to words and detokenises them."""
        words = f"{' '.join(pieces)} ".replace(f"{_CONTINUED} ", "")
        return self.detokeniser.detokenize(moses_words(words))

    def begins_word(self, piece: str, before: str) -> bool:
        """Whether the subword before is the last of its word."""
        return not before.endswith(_CONTINUED)


class Words(Subwords):
    """No subwords: each word is one symbol."""

    def _pieces(self, words: str) -> list[str]:
        return words_of(words.lower() if self.lowercase else words)

    def _text(self, pieces: list[str]) -> str:
        """The words with spaces between them."""
        return " ".join(pieces)

    def begins_word(self, piece: str, before: str) -> bool:
        """Always true."""
        return True


@dataclass(frozen=True)
class Prepared:
    """How recipes/prepare.sh prepared a ``data-bin``.

    Attributes:
        subwords: folder of the subword model.
        lowercase: whether the text was converted to lower case.
    """

    subwords: Path
    lowercase: bool = False

    @classmethod
    def beside(cls, data: Path) -> Prepared:
        """Reads the files beside the folder ``data``; without a report the case was kept.

        Raises:
            ValueError: the report is damaged.
        """
        run = data.resolve().parent
        report = run / "clean" / "report.json"
        lowercase = False
        if report.is_file():
            try:
                form = json.loads(report.read_text(encoding="utf-8")).get("form", {})
                lowercase = bool(form.get("lowercase"))
            except (ValueError, AttributeError) as error:
                raise ValueError(
                    f"{report}: not what data-prep/clean.py writes ({error}): prepare the data"
                    " again"
                ) from None
        return cls(run / "subwords", lowercase)


def target_folder(source: Path) -> Path:
    """The folder of the target language's model, if it has one of its own: ``subwords-target``
    beside ``subwords``."""
    folder = source.with_name(f"{source.name}-target")
    return folder if folder.is_dir() else source


def load_subwords(folder: Path, language: str, lowercase: bool = False) -> Subwords:
    """The subword model in ``folder``, of any kind, for sentences in ``language``.

    Raises:
        FileNotFoundError: there is no model.
        ValueError: it is damaged.
    """
    if (folder / _MODEL).is_file():
        return SentencePieces(folder / _MODEL, lowercase)
    if (folder / _CODES).is_file():
        return MosesPieces(folder / _CODES, language, lowercase)
    if (folder / _VOCABULARY).is_file():
        return Words(lowercase)
    raise FileNotFoundError(
        f"{folder}: holds neither {_MODEL} nor {_CODES}; give --subwords the folder of the subword"
        " model, which recipes/prepare.sh writes to runs/EXPERIMENT/subwords"
    )
