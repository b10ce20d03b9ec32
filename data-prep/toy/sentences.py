"""Random toy sentences: statements, linked, reported and relative clauses, attempts, questions."""

from __future__ import annotations

from dataclasses import replace

from toy.clauses import (
    Chance,
    counts_all,
    description,
    random_clause,
    random_subject,
    random_tense,
    with_objects,
)
from toy.nouns import NOUNS
from toy.syntax import (
    Attempt,
    Clause,
    Linked,
    NounPhrase,
    Question,
    Relative,
    Sentence,
    Statement,
)
from toy.verbs import CONJUNCTIONS, FREQUENCIES, QUESTION_WORDS, SAYING_VERBS, TRYING, VERBS


def random_sentence(chance: Chance) -> Sentence:
    """Any sentence of the toy language."""
    kind = chance.stream.random() * 100
    if kind < 44:
        return _statement(chance)
    if kind < 60:
        return _linked(chance)
    if kind < 71:
        return _reported(chance)
    if kind < 78:
        return _attempt(chance)
    if kind < 88:
        return _with_relative_clause(chance)
    return _question(chance)


def _statement(chance: Chance) -> Statement:
    clause = random_clause(chance)
    if clause.time and chance.happens(45):
        return Statement(clause, "time")
    if clause.place and chance.happens(35):
        return Statement(clause, "place")
    return Statement(clause)


def _linked(chance: Chance) -> Linked:
    main, subordinate = random_clause(chance, short=True), random_clause(chance, short=True)
    return Linked(main, chance.pick(CONJUNCTIONS), subordinate, chance.happens(45))


def _reported(chance: Chance) -> Linked:
    """He knows that ..."""
    subject = random_subject(chance, animal=False)
    tense = "past" if chance.happens(25) else "present"
    main = Clause(subject, chance.pick(SAYING_VERBS), tense)
    return Linked(main, ("that", "dass"), random_clause(chance, short=chance.happens(50)))


def _attempt(chance: Chance) -> Attempt:
    """He tries to ..."""
    verb = chance.pick(VERBS)
    main = Clause(
        random_subject(chance, "animal" in verb.traits),
        TRYING,
        "past" if chance.happens(35) else "present",
    )
    if chance.happens(20) and not counts_all(main.subject):
        main = replace(main, frequency=chance.pick(FREQUENCIES))
    return Attempt(main, with_objects(chance, Clause(main.subject, verb)))


def _with_relative_clause(chance: Chance) -> Statement:
    """The man who sings is tired; the book that he reads is old."""
    noun = chance.pick(NOUNS)
    plural = chance.happens(25)
    phrase = NounPhrase(
        noun, "the" if plural else chance.pick(("the", "the", "this", "every")), plural
    )
    if "person" in noun.kinds:
        relative = Relative(random_clause(chance, short=True, subject=phrase), "subject")
    else:
        verbs = [verb for verb in VERBS if verb.objects == "acc" and verb.object_kinds & noun.kinds]
        verb = chance.pick(verbs)
        owner, tense = random_subject(chance, animal=False), random_tense(chance, verb)
        relative = Relative(Clause(owner, verb, tense, object=phrase), "object")
    subject = replace(phrase, relative=relative)
    if relative.gap == "subject" and chance.happens(60):
        return Statement(random_clause(chance, short=True, subject=subject))
    return Statement(description(chance, subject))


def _question(chance: Chance) -> Question:
    clause = replace(random_clause(chance), negated=False)
    if chance.happens(45):
        return Question(clause)
    return Question(replace(clause, time=None, frequency=None), chance.pick(QUESTION_WORDS))
