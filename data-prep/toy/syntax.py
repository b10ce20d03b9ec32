"""The abstract syntax of a toy sentence, which english.py and german.py put into words.

contrast.py sets three fields for errors in the German: the case of a noun phrase, and the agreement
and position of a clause's finite verb.
"""

from __future__ import annotations

from dataclasses import dataclass

from toy.nouns import Adjective, Noun
from toy.verbs import Modal, Verb

PRONOUNS = ("I", "he", "she", "we", "they")


@dataclass(frozen=True)
class NounPhrase:
    """ "the old man", with a possessor ("the dog of my brother") or a relative clause."""

    noun: Noun
    determiner: str
    plural: bool = False
    adjective: Adjective | None = None
    possessor: NounPhrase | None = None
    relative: Relative | None = None
    case: str = ""  # instead of the correct one


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun, named by its English subject form."""

    english: str


@dataclass(frozen=True)
class Name:
    """One first name or two joined by "and"."""

    names: tuple[str, ...]


Phrase = NounPhrase | Pronoun | Name


@dataclass(frozen=True)
class Clause:
    """Who does what to whom, where and when. `tense` is present, past or a modal verb.

    With `adjective` instead of `verb`: "the dog is tired" (present or past).
    """

    subject: Phrase
    verb: Verb | None
    tense: str | Modal = "present"
    adjective: Adjective | None = None
    receiver: Phrase | None = None  # dative
    object: Phrase | None = None  # accusative
    companion: Phrase | None = None  # with whom
    beneficiary: Phrase | None = None  # for whom
    place: tuple[tuple[str, str], NounPhrase] | None = None
    time: tuple[str, str] | None = None
    frequency: tuple[str, str] | None = None
    negated: bool = False
    agrees_with: str = ""  # I, he or they, instead of the subject's
    misplaced: bool = False  # the finite verb is where a plain main clause has it


@dataclass(frozen=True)
class Relative:
    """A clause about a noun phrase, which is its subject or its accusative object (`gap`)."""

    clause: Clause
    gap: str  # subject or object


@dataclass(frozen=True)
class Statement:
    """A main clause that begins with its subject or with its time or place (`front`)."""

    clause: Clause
    front: str = "subject"  # subject, time or place


@dataclass(frozen=True)
class Linked:
    """A main clause with a subordinate one, which may come first."""

    main: Clause
    conjunction: tuple[str, str]  # ("because", "weil")
    subordinate: Clause
    subordinate_first: bool = False


@dataclass(frozen=True)
class Attempt:
    """ "He tries to do it": `action` lends its verb and objects, not its tense or negation."""

    main: Clause
    action: Clause


@dataclass(frozen=True)
class Question:
    """A yes-or-no question, or one with a question word."""

    clause: Clause
    word: tuple[str, str] | None = None


Sentence = Statement | Linked | Attempt | Question


def person_and_number(phrase: Phrase) -> str:
    """The person that a finite verb agrees with: I, he (third singular) or they (plural, we)."""
    match phrase:
        case Pronoun("I"):
            return "I"
        case Pronoun(english):
            return "he" if english in ("he", "she") else "they"
        case Name(names):
            return "he" if len(names) == 1 else "they"
        case NounPhrase():
            return "they" if phrase.plural else "he"


def join_words(words: list[str], end: str) -> str:
    """Words and commas as a sentence: capitalised, no space before commas and `end`."""
    text = " ".join(word for word in words if word)
    text = text.replace(" ,", ",").replace(",,", ",").removesuffix(",")
    return text[0].upper() + text[1:] + end
