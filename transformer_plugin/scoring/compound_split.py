"""BLEU as the paper's authors computed it, with the steps of their get_ende_bleu.sh."""

from __future__ import annotations

import re

from sacrebleu.metrics import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer

_HYPHEN = re.compile(r"(\S)-(\S)")
_SPLIT_ALREADY = re.compile(r"##AT##|(^|\s)@-@(\s|$)")
_QUOTES = str.maketrans({**dict.fromkeys("„“”‟«»", '"'), **dict.fromkeys("‚‘’‛", "'")})


def refuse_split_hyphens(name: str, lines: list[str]) -> None:
    """Refuses text in which Moses has split hyphens (option -a).

    Raises:
        ValueError: a line has split hyphens; the message names the first.
    """
    for number, line in enumerate(lines, start=1):
        if _SPLIT_ALREADY.search(line):
            raise ValueError(
                f"{name}:{number}: hyphens are already split ('{line[:60]}'): expected"
                " detokenised text; detokenise it, or tokenise without -a"
            )


def normalise_punctuation(lines: list[str]) -> list[str]:
    """Step 1, for hypotheses: replaces Unicode punctuation by ASCII."""
    normalizer = MosesPunctNormalizer()
    return [normalizer.replace_unicode_punct(line) for line in lines]


def normalise_quotes(lines: list[str]) -> list[str]:
    """Replaces quotes by ASCII quotes, as in the reference that Google used (tensor2tensor#317)."""
    return [line.translate(_QUOTES) for line in lines]


def tokenise(lines: list[str], language: str) -> list[str]:
    """Step 2: Moses without -a. Both sides keep its HTML escapes, as in the script."""
    moses = MosesTokenizer(lang=language)
    return [moses.tokenize(line, return_str=True) for line in lines]


def split_hyphens(lines: list[str]) -> list[str]:
    """Step 3: splits compounds at hyphens. Matches do not overlap, so a-b-c is split once."""
    return [_HYPHEN.sub(r"\1 ##AT##-##AT## \2", line) for line in lines]


def tokenised_bleu(
    hypotheses: list[str], references: list[str], lowercase: bool = False
) -> tuple[float, str]:
    """Step 4: BLEU of tokenised text in per cent, and sacrebleu's signature. The script's is
    case-sensitive."""
    bleu = BLEU(tokenize="none", force=True, lowercase=lowercase)
    found = bleu.corpus_score(hypotheses, [references]).score
    return found, str(bleu.get_signature())


def authors_scores(
    hypotheses: list[str], references: list[str], language: str, lowercase: bool = False
) -> dict[str, dict[str, float | str]]:
    """Score and signature of ``tokenised``, ``compound_split`` and ``compound_split_quotes``."""
    ours = tokenise(normalise_punctuation(hypotheses), language)
    theirs = tokenise(references, language)
    quotes = tokenise(normalise_quotes(references), language)
    split = split_hyphens(ours)
    variants = {
        "tokenised": (ours, theirs, ""),
        "compound_split": (split, split_hyphens(theirs), "|hyphens:split"),
        "compound_split_quotes": (split, split_hyphens(quotes), "|hyphens:split|quotes:ascii"),
    }
    found: dict[str, dict[str, float | str]] = {}
    for name, (left, right, changes) in variants.items():
        value, signature = tokenised_bleu(left, right, lowercase)
        found[name] = {"score": value, "signature": f"{signature}|moses:{language}{changes}"}
    return found
