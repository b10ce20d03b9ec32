"""Random clauses that make some sense: eggs are eaten, lamps are turned on.

Only `random.Random.random` is used, the one method whose numbers Python guarantees, so that a seed
gives the same sentences on every machine and version.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from toy.nouns import NAMES, NOUNS, Adjective, Noun, adjectives_for, nouns_of
from toy.syntax import PRONOUNS, Clause, Name, NounPhrase, Phrase, Pronoun
from toy.verbs import (
    FREQUENCIES,
    FUTURE,
    FUTURE_TIMES,
    MODALS,
    PAST_TIMES,
    PLACES,
    PRESENT_TIMES,
    VERBS,
    Modal,
    Verb,
)

PERSON, ANIMAL, PLACE = frozenset({"person"}), frozenset({"animal"}), frozenset({"place"})
OWNERS = ("my", "his", "her", "our", "their")
SINGULAR = ("the", "the", "the", "the", "a", "a", "a", "this", *OWNERS)
PLURAL = ("the", "the", "this", "two", "three", "many", "", *OWNERS)
ADJECTIVES_OF = {noun: adjectives_for(noun) for noun in NOUNS}
Item = TypeVar("Item")


@dataclass(frozen=True)
class Chance:
    """Decisions from one stream of random numbers."""

    stream: random.Random

    def pick(self, items: Sequence[Item]) -> Item:
        """One of `items`, all equally likely."""
        return items[int(self.stream.random() * len(items))]

    def happens(self, percent: int) -> bool:
        """True in `percent` of a hundred calls."""
        return self.stream.random() * 100 < percent


def noun_phrase(chance: Chance, noun: Noun, adjective_percent: int = 35) -> NounPhrase:
    plural = chance.happens(25)
    determiner = chance.pick(PLURAL if plural else SINGULAR)
    adjective: Adjective | None = None
    if chance.happens(adjective_percent):
        adjective = chance.pick(ADJECTIVES_OF[noun])
    possessor = None
    may_have_owner = determiner == "the" and adjective is None and "place" not in noun.kinds
    if may_have_owner and chance.happens(15):
        owner = chance.pick(("the", *OWNERS))
        possessor = NounPhrase(chance.pick(nouns_of(PERSON)), owner, chance.happens(20))
    return NounPhrase(noun, determiner, plural, adjective, possessor)


def random_subject(chance: Chance, animal: bool) -> Phrase:
    kind = chance.stream.random() * 100
    if kind < 20:
        return Pronoun(chance.pick(PRONOUNS))
    if kind < 32:
        return Name((chance.pick(NAMES),))
    if kind < 36:
        first, second = int(chance.stream.random() * 5), int(chance.stream.random() * 5)
        return Name((NAMES[first], NAMES[5 + second]))
    noun = chance.pick(nouns_of(PERSON | ANIMAL if animal and kind > 60 else PERSON))
    if kind > 96:  # "every child", "no child"
        return NounPhrase(noun, "every" if kind > 98 else "no")
    return noun_phrase(chance, noun)


def _person(chance: Chance, subject: Phrase) -> Phrase:
    """Somebody other than the subject, as an object."""
    kind = chance.stream.random() * 100
    if kind < 25:
        speaker = ("I", "we")
        said = subject.english if isinstance(subject, Pronoun) else ""
        others = [
            one for one in PRONOUNS if one != said and not (one in speaker and said in speaker)
        ]
        return Pronoun(chance.pick(others))
    if kind < 35:
        taken = subject.names if isinstance(subject, Name) else ()
        return Name((chance.pick([name for name in NAMES if name not in taken]),))
    return noun_phrase(chance, chance.pick(nouns_of(PERSON)))


def random_tense(chance: Chance, verb: Verb) -> str | Modal:
    kind = chance.stream.random() * 100
    if kind < 45:
        return "present"
    if kind < 75 and "nopast" not in verb.traits:
        return "past"
    return chance.pick(MODALS)


def random_clause(chance: Chance, short: bool = False, subject: Phrase | None = None) -> Clause:
    """Any clause; a short one has only its objects."""
    if chance.happens(15):
        return description(chance, subject)
    verb = chance.pick(VERBS)
    subject = subject or random_subject(chance, "animal" in verb.traits)
    tense = random_tense(chance, verb)
    clause = with_objects(chance, Clause(subject, verb, tense))
    if short:
        return clause
    return _with_circumstances(chance, clause)


def description(chance: Chance, subject: Phrase | None = None) -> Clause:
    """The dog is tired."""
    tense = "past" if chance.happens(30) else "present"
    noun = chance.pick(NOUNS)
    if isinstance(subject, NounPhrase):
        noun = subject.noun
    elif subject is None:
        subject = noun_phrase(chance, noun, adjective_percent=10)
    else:
        noun = nouns_of(PERSON)[0]
    clause = Clause(subject, None, tense, chance.pick(ADJECTIVES_OF[noun]))
    if counts_all(subject):
        return clause
    if chance.happens(20):
        return replace(clause, negated=True)
    if chance.happens(20):
        return replace(clause, frequency=chance.pick(FREQUENCIES))
    return clause


def with_objects(chance: Chance, clause: Clause) -> Clause:
    verb = clause.verb
    assert verb is not None
    if verb.objects in ("dat", "both"):
        clause = replace(clause, receiver=_person(chance, clause.subject))
    if verb.objects in ("acc", "both"):
        noun = chance.pick(nouns_of(verb.object_kinds))
        if "person" in noun.kinds:
            return replace(clause, object=_person(chance, clause.subject))
        return replace(clause, object=noun_phrase(chance, noun))
    return clause


def _with_circumstances(chance: Chance, clause: Clause) -> Clause:
    """Add a time or a frequency or "not", and one of place, companion and beneficiary."""
    verb = clause.verb
    assert verb is not None
    kind = chance.stream.random() * 100
    if kind < 30:
        times = PRESENT_TIMES
        if clause.tense == "past":
            times = PAST_TIMES
        elif clause.tense == FUTURE:
            times = FUTURE_TIMES
        clause = replace(clause, time=chance.pick(times))
    elif kind < 45 and not counts_all(clause.subject):
        clause = replace(clause, frequency=chance.pick(FREQUENCIES))
    elif kind < 57 and isinstance(clause.tense, str) and _can_be_negated(clause):
        return replace(clause, negated=True)
    if "place" in verb.traits and chance.happens(40):
        place = noun_phrase(chance, chance.pick(nouns_of(PLACE)), adjective_percent=20)
        if place.determiner in ("the", "this", "a") and not place.plural and not place.possessor:
            return replace(clause, place=(chance.pick(PLACES), place))
    if "with" in verb.traits and chance.happens(30):
        return replace(clause, companion=_person(chance, clause.subject))
    if "for" in verb.traits and chance.happens(30):
        return replace(clause, beneficiary=_person(chance, clause.subject))
    return clause


def counts_all(subject: Phrase) -> bool:
    """ "every child" and "no child", which do not combine with "never" and "not"."""
    return isinstance(subject, NounPhrase) and subject.determiner in ("every", "no")


def _can_be_negated(clause: Clause) -> bool:
    """German uses "kein", not "nicht", with indefinite objects: such clauses stay positive here."""
    phrases = (clause.object, clause.receiver)
    return not counts_all(clause.subject) and all(
        not isinstance(phrase, NounPhrase) or phrase.determiner in ("the", "this", *OWNERS)
        for phrase in phrases
    )
