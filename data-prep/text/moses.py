"""Moses' punctuation normalisation and tokenisation, and how to undo the latter, with sacremoses.

WMT14 is prepared like this in the literature: quotes and dashes normalised, no hyphens split (no
-a), and Moses' reserved characters escaped (&apos; and so on), which its detokeniser undoes.
"""

from __future__ import annotations

from functools import cache

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from transformer_plugin.text_lines import moses_words


@cache
def _tools(language: str) -> tuple[MosesPunctNormalizer, MosesTokenizer]:
    return MosesPunctNormalizer(language), MosesTokenizer(language)


def tokenise(sentence: str, language: str) -> str:
    """The tokens of a sentence with single spaces between them."""
    normaliser, tokeniser = _tools(language)
    text: str = tokeniser.tokenize(normaliser.normalize(sentence), return_str=True)
    return " ".join(text.split())


@cache
def _detokeniser(language: str) -> MosesDetokenizer:
    return MosesDetokenizer(language)


def detokenise(sentence: str, language: str) -> str:
    """The plain text of a sentence's tokens."""
    text: str = _detokeniser(language).detokenize(moses_words(sentence))
    return text
