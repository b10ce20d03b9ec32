"""Toy sentences in German: word order and the verb complex (inflection.py has the endings).

A clause has a finite verb, a middle field and a right bracket (prefix, participle or infinitive).
Main clause: FRONT finite middle bracket. Question: finite middle bracket. Subordinate clause:
middle bracket finite. So `Clause` is split once, and each kind of clause arranges the parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from toy.inflection import phrase_words, place_words, relative_pronoun
from toy.syntax import (
    Attempt,
    Clause,
    Linked,
    NounPhrase,
    Pronoun,
    Question,
    Sentence,
    Statement,
    join_words,
    person_and_number,
)
from toy.verbs import Modal, Verb

_SEIN = {
    "present": {"I": "bin", "he": "ist", "they": "sind"},
    "past": {"I": "war", "he": "war", "they": "waren"},
}
_HABEN = {"I": "habe", "he": "hat", "they": "haben"}


@dataclass(frozen=True)
class _VerbComplex:
    """The finite verb and the end of the clause; only a main clause separates `prefix`."""

    finite: str
    prefix: str = ""
    bracket: str = ""


def say(sentence: Sentence) -> str:
    """The German sentence, capital letter and punctuation included."""
    match sentence:
        case Statement(clause, front):
            return join_words(_main(clause, front), ".")
        case Linked(main, (_, conjunction), subordinate, subordinate_first):
            last = _verb_final([conjunction], subordinate)
            if subordinate_first:
                return join_words([*last, ",", *_verb_first(main)], ".")
            return join_words([*_main(main), ",", *last], ".")
        case Attempt(main, action):
            assert action.verb is not None
            to = _zu_infinitive(action.verb)
            return join_words([*_main(main), ",", *_middle(action), to], ".")
        case Question(clause, word):
            return join_words([word[1] if word else "", *_verb_first(clause)], "?")


def _verb_complex(clause: Clause) -> _VerbComplex:
    who = clause.agrees_with or person_and_number(clause.subject)
    verb, tense = clause.verb, clause.tense
    if verb is None:
        assert clause.adjective is not None and isinstance(tense, str)
        return _VerbComplex(_SEIN[tense][who], bracket=clause.adjective.german)
    if isinstance(tense, Modal):
        forms = {"I": tense.german_ich, "he": tense.german_er, "they": tense.german_plural}
        return _VerbComplex(forms[who], bracket=verb.german_prefix + verb.german)
    if tense == "past":
        auxiliary = _SEIN["present"] if "sein" in verb.traits else _HABEN
        return _VerbComplex(auxiliary[who], bracket=verb.german_participle)
    forms = {"I": verb.german_ich, "he": verb.german_er, "they": verb.german}
    return _VerbComplex(forms[who], prefix=verb.german_prefix)


def _zu_infinitive(verb: Verb) -> str:
    """ "zu kaufen", but "anzurufen"."""
    if verb.german_prefix:
        return f"{verb.german_prefix}zu{verb.german}"
    return f"zu {verb.german}"


def _middle(clause: Clause, gap: str = "", front: str = "") -> list[str]:
    """Pronouns, time, dative, accusative, "nicht", for whom, with whom, place: in this order."""
    pronouns: list[str] = []
    objects: list[str] = []
    for phrase, case in ((clause.object, "acc"), (clause.receiver, "dat")):
        if phrase is None or (gap == "object" and case == "acc"):
            continue
        words = phrase_words(phrase, case)
        if isinstance(phrase, Pronoun):
            pronouns = [*pronouns, *words]
        else:
            objects = [*words, *objects]
    words = [*pronouns]
    if clause.time and front != "time":
        words.append(clause.time[1])
    if clause.frequency:
        words.append(clause.frequency[1])
    words += objects
    if clause.negated:
        words.append("nicht")
    if clause.beneficiary:
        words += ["für", *phrase_words(clause.beneficiary, "acc")]
    if clause.companion:
        words += ["mit", *phrase_words(clause.companion, "dat")]
    if clause.place and front != "place":
        words += place_words(*clause.place)
    return words


def _main(clause: Clause, front: str = "subject") -> list[str]:
    """Verb second: the subject, the time or the place, then the finite verb."""
    if front == "time" and clause.time:
        return [clause.time[1], *_verb_first(clause, front)]
    if front == "place" and clause.place:
        return [*place_words(*clause.place), *_verb_first(clause, front)]
    verb = _verb_complex(clause)
    subject = _subject(clause)
    return [*subject, verb.finite, *_middle(clause), verb.prefix, verb.bracket]


def _verb_first(clause: Clause, front: str = "") -> list[str]:
    """The finite verb before the subject: questions, and clauses after another front."""
    verb = _verb_complex(clause)
    subject = _subject(clause)
    begin = [*subject, verb.finite] if clause.misplaced else [verb.finite, *subject]
    return [*begin, *_middle(clause, front=front), verb.prefix, verb.bracket]


def _verb_final(opening: list[str], clause: Clause, gap: str = "") -> list[str]:
    """A subordinate clause: the finite verb last, a prefix joined to it."""
    if clause.misplaced:
        return [*opening, *_main(clause)]
    verb = _verb_complex(clause)
    subject = [] if gap == "subject" else _subject(clause)
    return [*opening, *subject, *_middle(clause, gap), verb.bracket, verb.prefix + verb.finite]


def _subject(clause: Clause) -> list[str]:
    """The subject, with its relative clause between commas (join_words removes surplus ones)."""
    phrase = clause.subject
    words = phrase_words(phrase, "nom")
    if isinstance(phrase, NounPhrase) and phrase.relative:
        gap = phrase.relative.gap
        pronoun = relative_pronoun(phrase, "nom" if gap == "subject" else "acc")
        words += [",", *_verb_final([pronoun], phrase.relative.clause, gap), ","]
    return words
