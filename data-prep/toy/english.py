"""Toy sentences in English."""

from __future__ import annotations

from toy.syntax import (
    Attempt,
    Clause,
    Linked,
    Name,
    NounPhrase,
    Phrase,
    Pronoun,
    Question,
    Relative,
    Sentence,
    Statement,
    join_words,
    person_and_number,
)
from toy.verbs import Modal

_OBJECT_FORMS = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
_BE = {
    "present": {"I": "am", "he": "is", "they": "are"},
    "past": {"I": "was", "he": "was", "they": "were"},
}


def say(sentence: Sentence) -> str:
    """The English sentence, capital letter and punctuation included."""
    match sentence:
        case Statement(clause, front):
            return join_words(_fronted(clause, front), ".")
        case Linked(main, (conjunction, _), subordinate, subordinate_first):
            if subordinate_first:
                return join_words([conjunction, *_plain(subordinate), ",", *_plain(main)], ".")
            return join_words([*_plain(main), conjunction, *_plain(subordinate)], ".")
        case Attempt(main, action):
            assert action.verb is not None
            return join_words([*_plain(main), "to", action.verb.english, *_after_verb(action)], ".")
        case Question(clause, word):
            return join_words([word[0] if word else "", *_asked(clause)], "?")


def phrase_words(phrase: Phrase, role: str = "object") -> list[str]:
    """A noun phrase, pronoun or name as a subject or an object."""
    match phrase:
        case Pronoun(english):
            return [english if role == "subject" else _OBJECT_FORMS[english]]
        case Name(names):
            return [" and ".join(names)]
        case NounPhrase(noun, determiner, plural, adjective, possessor, relative):
            words = [adjective.english] if adjective else []
            words.append(noun.english_plural if plural else noun.english)
            if determiner == "a" and words[0][0] in "aeiou":
                determiner = "an"
            if determiner == "this" and plural:
                determiner = "these"
            words.insert(0, determiner)
            if possessor:
                words += ["of", *phrase_words(possessor)]
            if relative:
                words += _relative(noun.kinds, relative)
            return words


def _verb_group(clause: Clause, asked: bool = False) -> tuple[str, list[str]]:
    """(auxiliary or "", the words after it) up to the objects; questions need an auxiliary."""
    who = person_and_number(clause.subject)
    verb, tense = clause.verb, clause.tense
    often = [clause.frequency[0]] if clause.frequency else []
    if verb is None:
        assert clause.adjective is not None and isinstance(tense, str)
        no = ["not"] if clause.negated else []
        return _BE[tense][who], [*no, *often, clause.adjective.english]
    if isinstance(tense, Modal):
        if not tense.english.endswith(" to"):
            return tense.english, [*often, verb.english]
        base, finite = tense.english, tense.english_he if who == "he" else tense.english
        rest = [verb.english]
    else:
        base, rest = verb.english, []
        finite = verb.english_past if tense == "past" else verb.english
        if tense == "present" and who == "he":
            finite = verb.english_he
    if not asked and not clause.negated:
        return "", [*often, finite, *rest]
    do = "did" if tense == "past" else "does" if who == "he" else "do"
    return do, [*(["not"] if clause.negated else []), *often, base, *rest]


def _after_verb(clause: Clause, gap: str = "", front: str = "") -> list[str]:
    """Objects, companions, place and time, except for those in a gap or at the front."""
    words: list[str] = []
    if clause.receiver:
        words += phrase_words(clause.receiver)
    if clause.object and gap != "object":
        words += phrase_words(clause.object)
    particle = clause.verb.english_particle if clause.verb else ""
    if particle:  # she picks up the child, but she picks him up
        words.insert(len(words) if isinstance(clause.object, Pronoun) else 0, particle)
    if clause.beneficiary:
        words += ["for", *phrase_words(clause.beneficiary)]
    if clause.companion:
        words += ["with", *phrase_words(clause.companion)]
    if clause.place and front != "place":
        words += _place(clause)
    if clause.time and front != "time":
        words.append(clause.time[0])
    return words


def _place(clause: Clause) -> list[str]:
    assert clause.place is not None
    (preposition, _), place = clause.place
    return [preposition, *phrase_words(place)]


def _plain(clause: Clause, gap: str = "", front: str = "") -> list[str]:
    subject = [] if gap == "subject" else phrase_words(clause.subject, "subject")
    auxiliary, rest = _verb_group(clause)
    return [*subject, auxiliary, *rest, *_after_verb(clause, gap, front)]


def _fronted(clause: Clause, front: str) -> list[str]:
    if front == "time" and clause.time:
        return [clause.time[0], *_plain(clause, front=front)]
    if front == "place" and clause.place:
        return [*_place(clause), *_plain(clause, front=front)]
    return _plain(clause)


def _asked(clause: Clause) -> list[str]:
    auxiliary, rest = _verb_group(clause, asked=True)
    return [auxiliary, *phrase_words(clause.subject, "subject"), *rest, *_after_verb(clause)]


def _relative(kinds: frozenset[str], relative: Relative) -> list[str]:
    opening = "who" if "person" in kinds and relative.gap == "subject" else "that"
    return [opening, *_plain(relative.clause, gap=relative.gap)]
