"""Moses' punctuation normalisation and tokenisation, with sacremoses.

WMT14 is prepared like this in the literature: quotes and dashes normalised, no hyphens split (no
-a), and Moses' reserved characters escaped (&apos; and so on), which its detokeniser undoes.
"""

from __future__ import annotations

from functools import cache

from sacremoses import MosesPunctNormalizer, MosesTokenizer


@cache
def _tools(language: str) -> tuple[MosesPunctNormalizer, MosesTokenizer]:
    return MosesPunctNormalizer(language), MosesTokenizer(language)


def tokenise(sentence: str, language: str) -> str:
    """The tokens of a sentence with single spaces between them."""
    normaliser, tokeniser = _tools(language)
    text: str = tokeniser.tokenize(normaliser.normalize(sentence), return_str=True)
    return " ".join(text.split())
