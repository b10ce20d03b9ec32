"""Contrastive pairs of toy sentences: the correct German, and a version with a single error.

gender    a determiner (with its adjective) of another gender
case      an object in the accusative instead of the dative, or vice versa
number    a finite verb in the plural with a singular subject, or vice versa
position  a finite verb second instead of last, or after the subject instead of before it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from toy import german
from toy.syntax import (
    Attempt,
    Clause,
    Linked,
    Name,
    NounPhrase,
    Pronoun,
    Question,
    Sentence,
    Statement,
    person_and_number,
)

OTHER_CASE = {"object": "dat", "beneficiary": "dat", "receiver": "acc", "companion": "acc"}
MARK = "§"


@dataclass(frozen=True)
class Mistake:
    """An error in a German sentence. `distance` in words, 1 for neighbours, is that of the words
    that must agree, or that the verb was moved; None if neither applies."""

    category: str
    wrong: str
    distance: int | None = None


def mistakes(sentence: Sentence) -> list[Mistake]:
    """All possible errors in a sentence; each is wrong under every reading."""
    right = german.say(sentence)
    found = [
        mistake
        for clause, put in _clauses(sentence)
        for kind in (_gender, _case, _number)
        for mistake in kind(clause, put)
    ]
    for misplaced in _misplaced(sentence):
        wrong = german.say(misplaced)
        if wrong != right:
            found.append(Mistake("position", wrong, _moved(right.split(), wrong.split())))
    unlike = {mistake.wrong: mistake for mistake in reversed(found) if mistake.wrong != right}
    return [mistake for mistake in found if unlike.get(mistake.wrong) is mistake]


Put = Callable[[Clause], Sentence]  # the sentence with another clause


def _clauses(sentence: Sentence) -> list[tuple[Clause, Put]]:
    match sentence:
        case Linked(main, _, subordinate):
            return [
                (main, lambda clause: replace(sentence, main=clause)),
                (subordinate, lambda clause: replace(sentence, subordinate=clause)),
            ]
        case Attempt(main):
            return [(main, lambda clause: replace(sentence, main=clause))]
        case Statement(clause) | Question(clause):
            return [(clause, lambda clause: replace(sentence, clause=clause))]


def _gender(clause: Clause, put: Put) -> Iterator[Mistake]:
    """Excludes nouns whose plural equals the singular, or whose form depends on the gender."""
    for role in ("subject", *OTHER_CASE):
        phrase = getattr(clause, role)
        if not isinstance(phrase, NounPhrase) or phrase.plural or phrase.relative:
            continue
        noun = phrase.noun
        if noun.german == noun.german_plural or noun.is_weak:
            continue
        for gender in "mfn".replace(noun.gender, ""):
            wrong = replace(phrase, noun=replace(noun, gender=gender))
            said = german.say(put(replace(clause, **{role: wrong})))
            yield Mistake("gender", said, 1 + bool(phrase.adjective))


def _case(clause: Clause, put: Put) -> Iterator[Mistake]:
    """Excludes nouns of the weak declension: see `Noun.is_weak`."""
    for role, case in OTHER_CASE.items():
        phrase = getattr(clause, role)
        if isinstance(phrase, NounPhrase) and not phrase.noun.is_weak:
            wrong = replace(clause, **{role: replace(phrase, case=case)})
            yield Mistake("case", german.say(put(wrong)))


def _number(clause: Clause, put: Put) -> Iterator[Mistake]:
    """Excludes "I", and "sie", which means both she and they."""
    subject, who = clause.subject, person_and_number(clause.subject)
    if who == "I" or subject in (Pronoun("she"), Pronoun("they")):
        return
    said = german.say(put(replace(clause, agrees_with="they" if who == "he" else "he")))
    marked = replace(clause, subject=_marked(subject), agrees_with=who)
    words = german.say(put(marked)).split()
    (head,) = (i for i, word in enumerate(words) if MARK in word)
    right, wrong = german.say(put(clause)).split(), said.split()
    differing = [i for i, (one, other) in enumerate(zip(right, wrong, strict=True)) if one != other]
    if differing:
        yield Mistake("number", said, abs(differing[0] - head))


def _marked(subject: NounPhrase | Pronoun | Name) -> NounPhrase | Name:
    """The subject with the mark as its head."""
    if isinstance(subject, NounPhrase):
        return replace(subject, noun=replace(subject.noun, german=MARK, german_plural=MARK))
    return Name((*subject.names[:-1], MARK) if isinstance(subject, Name) else (MARK,))


def _misplaced(sentence: Sentence) -> Iterator[Sentence]:
    match sentence:
        case Statement(clause, front) if front != "subject":
            yield replace(sentence, clause=replace(clause, misplaced=True))
        case Linked(main, _, subordinate, subordinate_first):
            yield replace(sentence, subordinate=replace(subordinate, misplaced=True))
            if subordinate_first:
                yield replace(sentence, main=replace(main, misplaced=True))


def _moved(right: list[str], wrong: list[str]) -> int:
    """The number of words moved over: all that differ except one."""
    begin = next(i for i, pair in enumerate(zip(right, wrong, strict=False)) if pair[0] != pair[1])
    end = next(i for i, pair in enumerate(zip(right[::-1], wrong[::-1], strict=False))
               if pair[0] != pair[1])  # fmt: skip
    return max(1, len(right) - begin - end - 1)
