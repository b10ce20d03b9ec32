"""The toy grammar's German, against sentences and declensions written by hand."""

from __future__ import annotations

import pytest

import toy.english
import toy.german
from toy.inflection import noun_form, phrase_words
from toy.nouns import ADJECTIVES, NOUNS
from toy.syntax import (
    Attempt,
    Clause,
    Linked,
    Name,
    NounPhrase,
    Pronoun,
    Question,
    Relative,
    Statement,
)
from toy.verbs import MODALS, SAYING_VERBS, TRYING, VERBS

NOUN = {noun.english: noun for noun in NOUNS}
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}
VERB = {f"{verb.english} {verb.english_particle}".strip(): verb for verb in (*VERBS, *SAYING_VERBS)}
MODAL = {modal.english: modal for modal in MODALS}
YESTERDAY, TODAY, OFTEN = ("yesterday", "gestern"), ("today", "heute"), ("often", "oft")


def the(english, plural=False, determiner="the", adjective=None, **more):
    return NounPhrase(
        NOUN[english], determiner, plural, ADJECTIVE[adjective] if adjective else None, **more
    )


# determiner, noun, plural: nominative, accusative, dative, genitive with the adjective "old"
DECLENSIONS = {
    ("the", "man", False): "der alte Mann, den alten Mann, dem alten Mann, des alten Mannes",
    ("the", "woman", False): "die alte Frau, die alte Frau, der alten Frau, der alten Frau",
    ("the", "child", False): "das alte Kind, das alte Kind, dem alten Kind, des alten Kindes",
    ("the", "child", True): "die alten Kinder, die alten Kinder, den alten Kindern, "
    "der alten Kinder",
    ("a", "man", False): "ein alter Mann, einen alten Mann, einem alten Mann, eines alten Mannes",
    ("my", "woman", False): "meine alte Frau, meine alte Frau, meiner alten Frau, "
    "meiner alten Frau",
    ("our", "child", False): "unser altes Kind, unser altes Kind, unserem alten Kind, "
    "unseres alten Kindes",
    ("no", "man", False): "kein alter Mann, keinen alten Mann, keinem alten Mann, "
    "keines alten Mannes",
    ("his", "man", True): "seine alten Männer, seine alten Männer, seinen alten Männern, "
    "seiner alten Männer",
    ("this", "man", False): "dieser alte Mann, diesen alten Mann, diesem alten Mann, "
    "dieses alten Mannes",
    ("every", "child", False): "jedes alte Kind, jedes alte Kind, jedem alten Kind, "
    "jedes alten Kindes",
    ("two", "man", True): "zwei alte Männer, zwei alte Männer, zwei alten Männern, "
    "zwei alter Männer",
    ("many", "woman", True): "viele alte Frauen, viele alte Frauen, vielen alten Frauen, "
    "vieler alter Frauen",
    ("the", "student", False): "der alte Student, den alten Studenten, dem alten Studenten, "
    "des alten Studenten",
    ("a", "boy", False): "ein alter Junge, einen alten Jungen, einem alten Jungen, "
    "eines alten Jungen",
    ("the", "car", True): "die alten Autos, die alten Autos, den alten Autos, der alten Autos",
}


@pytest.mark.parametrize("key", DECLENSIONS, ids=str)
def test_declension(key):
    determiner, noun, plural = key
    phrase = the(noun, plural, determiner, "old")
    forms = [" ".join(phrase_words(phrase, case)) for case in ("nom", "acc", "dat", "gen")]
    assert ", ".join(forms) == DECLENSIONS[key]


def test_a_bare_plural_has_strong_adjectives():
    assert phrase_words(the("apple", True, "", "expensive"), "dat") == ["", "teuren", "Äpfeln"]


def test_no_noun_has_a_doubled_dative_n():
    for noun in NOUNS:
        form = noun_form(noun, "dat", plural=True)
        assert form.endswith(("n", "s")) and not form.endswith("nn"), form


MAN, CHILD, CAR = the("man"), the("child"), the("car", determiner="a", adjective="new")
RELATIVE_MAN = the("man", relative=Relative(Clause(MAN, VERB["invite"], object=CHILD), "subject"))
RELATIVE_CAR = the(
    "car",
    relative=Relative(Clause(Pronoun("we"), VERB["repair"], "past", object=the("car")), "object"),
)

SENTENCES = [
    (
        Statement(Clause(MAN, VERB["buy"], object=CAR, time=TODAY), "time"),
        "Today the man buys a new car.",
        "Heute kauft der Mann ein neues Auto.",
    ),
    (
        Statement(Clause(MAN, VERB["buy"], "past", object=CAR, time=YESTERDAY)),
        "The man bought a new car yesterday.",
        "Der Mann hat gestern ein neues Auto gekauft.",
    ),
    (
        Statement(Clause(MAN, VERB["call"], object=CHILD)),
        "The man calls the child.",
        "Der Mann ruft das Kind an.",
    ),
    (
        Statement(Clause(MAN, VERB["call"], "past", object=CHILD)),
        "The man called the child.",
        "Der Mann hat das Kind angerufen.",
    ),
    (
        Statement(Clause(MAN, VERB["call"], MODAL["must"], object=CHILD)),
        "The man must call the child.",
        "Der Mann muss das Kind anrufen.",
    ),
    (
        Linked(
            Clause(CHILD, VERB["laugh"]),
            ("because", "weil"),
            Clause(MAN, VERB["call"], object=Pronoun("they")),
        ),
        "The child laughs because the man calls them.",
        "Das Kind lacht, weil der Mann sie anruft.",
    ),
    (
        Linked(
            Clause(CHILD, VERB["laugh"]),
            ("because", "weil"),
            Clause(MAN, VERB["arrive"], "past"),
            subordinate_first=True,
        ),
        "Because the man arrived, the child laughs.",
        "Weil der Mann angekommen ist, lacht das Kind.",
    ),
    (
        Linked(
            Clause(Pronoun("I"), VERB["know"]),
            ("that", "dass"),
            Clause(MAN, VERB["buy"], MODAL["want to"], object=CAR),
        ),
        "I know that the man wants to buy a new car.",
        "Ich weiß, dass der Mann ein neues Auto kaufen will.",
    ),
    (
        Attempt(Clause(Name(("Anna", "Paul")), TRYING), Clause(MAN, VERB["call"], object=CHILD)),
        "Anna and Paul try to call the child.",
        "Anna und Paul versuchen, das Kind anzurufen.",
    ),
    (
        Attempt(
            Clause(Name(("Anna",)), TRYING, "past"),
            Clause(MAN, VERB["help"], receiver=Pronoun("she")),
        ),
        "Anna tried to help her.",
        "Anna hat versucht, ihr zu helfen.",
    ),
    (
        Statement(
            Clause(the("mother"), VERB["give"], receiver=CHILD, object=the("apple", determiner="a"))
        ),
        "The mother gives the child an apple.",
        "Die Mutter gibt dem Kind einen Apfel.",
    ),
    (
        Statement(
            Clause(
                the("mother"),
                VERB["give"],
                "past",
                receiver=Pronoun("he"),
                object=the("apple", True, "three"),
                time=TODAY,
            )
        ),
        "The mother gave him three apples today.",
        "Die Mutter hat ihm heute drei Äpfel gegeben.",
    ),
    (
        Statement(Clause(Pronoun("she"), VERB["pick up"], object=Pronoun("he"))),
        "She picks him up.",
        "Sie holt ihn ab.",
    ),
    (
        Statement(Clause(Pronoun("she"), VERB["pick up"], object=CHILD, negated=True)),
        "She does not pick up the child.",
        "Sie holt das Kind nicht ab.",
    ),
    (
        Question(Clause(Pronoun("they"), VERB["see"], "past", object=the("queen"))),
        "Did they see the queen?",
        "Haben sie die Königin gesehen?",
    ),
    (
        Question(
            Clause(MAN, VERB["open"], object=the("letter", determiner="his"), frequency=OFTEN),
            ("why", "warum"),
        ),
        "Why does the man often open his letter?",
        "Warum macht der Mann oft seinen Brief auf?",
    ),
    (
        Question(Clause(CHILD, VERB["sleep"], MODAL["want to"])),
        "Does the child want to sleep?",
        "Will das Kind schlafen?",
    ),
    (
        Statement(Clause(RELATIVE_MAN, None, adjective=ADJECTIVE["tired"])),
        "The man who invites the child is tired.",
        "Der Mann, der das Kind einlädt, ist müde.",
    ),
    (
        Statement(
            Clause(RELATIVE_CAR, None, "past", adjective=ADJECTIVE["expensive"], negated=True)
        ),
        "The car that we repaired was not expensive.",
        "Das Auto, das wir repariert haben, war nicht teuer.",
    ),
    (
        Statement(Clause(CHILD, VERB["play"], place=(("in", "in"), the("garden")))),
        "The child plays in the garden.",
        "Das Kind spielt im Garten.",
    ),
    (
        Statement(
            Clause(
                CHILD,
                VERB["play"],
                "past",
                companion=the("boy"),
                time=("last week", "letzte Woche"),
            ),
            "time",
        ),
        "Last week the child played with the boy.",
        "Letzte Woche hat das Kind mit dem Jungen gespielt.",
    ),
    (
        Statement(
            Clause(CHILD, VERB["wait"], place=(("next to", "neben"), the("church"))), "place"
        ),
        "Next to the church the child waits.",
        "Neben der Kirche wartet das Kind.",
    ),
    (
        Statement(
            Clause(
                the("dog", possessor=the("neighbour", determiner="my")),
                VERB["follow"],
                "past",
                receiver=Pronoun("we"),
            )
        ),
        "The dog of my neighbour followed us.",
        "Der Hund meines Nachbarn ist uns gefolgt.",
    ),
    (
        Statement(
            Clause(
                Pronoun("I"),
                VERB["buy"],
                MODAL["will"],
                object=CAR,
                beneficiary=the("son", determiner="our"),
            )
        ),
        "I will buy a new car for our son.",
        "Ich werde ein neues Auto für unseren Sohn kaufen.",
    ),
    (
        Statement(Clause(Pronoun("I"), VERB["feed"], object=the("bear", determiner="this"))),
        "I feed this bear.",
        "Ich füttere diesen Bären.",
    ),
]


@pytest.mark.parametrize("sentence, english, german", SENTENCES, ids=lambda x: None)
def test_a_sentence_in_both_languages(sentence, english, german):
    assert toy.english.say(sentence) == english
    assert toy.german.say(sentence) == german


def test_the_grammar_has_about_two_hundred_stems():
    stems = len(NOUNS) + len(ADJECTIVES) + len(VERBS) + len(SAYING_VERBS)
    assert 160 <= stems <= 240
