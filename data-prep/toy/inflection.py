"""German endings: determiners, adjectives, nouns and pronouns in four cases.

A column of a table is m, f, n or p (plural of any gender); a row is nom, acc, dat or gen.
"""

from __future__ import annotations

from toy.nouns import Noun
from toy.syntax import Name, NounPhrase, Phrase, Pronoun

_COLUMNS = "mfnp"
_DER = {
    "nom": ("der", "die", "das", "die"),
    "acc": ("den", "die", "das", "die"),
    "dat": ("dem", "der", "dem", "den"),
    "gen": ("des", "der", "des", "der"),
}
_DIES = {
    "nom": ("er", "e", "es", "e"),
    "acc": ("en", "e", "es", "e"),
    "dat": ("em", "er", "em", "en"),
    "gen": ("es", "er", "es", "er"),
}
_EIN = {
    "nom": ("", "e", "", "e"),
    "acc": ("en", "e", "", "e"),
    "dat": ("em", "er", "em", "en"),
    "gen": ("es", "er", "es", "er"),
}
_WEAK = {
    "nom": ("e", "e", "e", "en"),
    "acc": ("en", "e", "e", "en"),
    "dat": ("en", "en", "en", "en"),
    "gen": ("en", "en", "en", "en"),
}
_MIXED = {
    "nom": ("er", "e", "es", "en"),
    "acc": ("en", "e", "es", "en"),
    "dat": ("en", "en", "en", "en"),
    "gen": ("en", "en", "en", "en"),
}
_STRONG_PLURAL = {"nom": "e", "acc": "e", "dat": "en", "gen": "er"}

_EIN_WORDS = {
    "a": "ein",
    "my": "mein",
    "his": "sein",
    "her": "ihr",
    "our": "unser",
    "their": "ihr",
    "no": "kein",
}
_DIES_WORDS = {"this": "dies", "every": "jed"}
_NUMBERS = {"two": "zwei", "three": "drei", "": ""}

_PRONOUNS = {
    "I": {"nom": "ich", "acc": "mich", "dat": "mir"},
    "he": {"nom": "er", "acc": "ihn", "dat": "ihm"},
    "she": {"nom": "sie", "acc": "sie", "dat": "ihr"},
    "we": {"nom": "wir", "acc": "uns", "dat": "uns"},
    "they": {"nom": "sie", "acc": "sie", "dat": "ihnen"},
}


def determiner_and_ending(determiner: str, case: str, column: str) -> tuple[str, str]:
    """The German determiner, and the ending of an adjective after it."""
    at = _COLUMNS.index(column)
    if determiner == "the":
        return _DER[case][at], _WEAK[case][at]
    if determiner in _DIES_WORDS:
        return _DIES_WORDS[determiner] + _DIES[case][at], _WEAK[case][at]
    if determiner in _EIN_WORDS:
        return _EIN_WORDS[determiner] + _EIN[case][at], _MIXED[case][at]
    if determiner == "many":
        return "viel" + _STRONG_PLURAL[case], _STRONG_PLURAL[case]
    return _NUMBERS[determiner], _STRONG_PLURAL[case]


def noun_form(noun: Noun, case: str, plural: bool) -> str:
    """The noun in a case: -n of the dative plural, weak masculines, genitive."""
    if plural:
        add_n = case == "dat" and noun.german_plural[-1] not in "ns"
        return noun.german_plural + ("n" if add_n else "")
    if case == "gen" or (noun.is_weak and case != "nom"):
        return noun.german_genitive
    return noun.german


def phrase_words(phrase: Phrase, case: str) -> list[str]:
    """A noun phrase, pronoun or name in a case, without its relative clause."""
    match phrase:
        case Pronoun(english):
            return [_PRONOUNS[english][case]]
        case Name(names):
            return [" und ".join(names)]
        case NounPhrase(noun, determiner, plural, adjective, possessor):
            case = phrase.case or case
            german, ending = determiner_and_ending(determiner, case, "p" if plural else noun.gender)
            words = [german, adjective.german_stem + ending if adjective else ""]
            words.append(noun_form(noun, case, plural))
            if possessor:
                words += phrase_words(possessor, "gen")
            return words


def place_words(preposition: tuple[str, str], place: NounPhrase) -> list[str]:
    """Where: a preposition with the dative; "in dem" becomes "im"."""
    words = [preposition[1], *phrase_words(place, "dat")]
    return ["im", *words[2:]] if words[:2] == ["in", "dem"] else words


def relative_pronoun(phrase: NounPhrase, case: str) -> str:
    """der, die, das or den: nominative and accusative equal the article."""
    return _DER[case][_COLUMNS.index("p" if phrase.plural else phrase.noun.gender)]
