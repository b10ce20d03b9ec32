"""Sentences of the toy grammar with their English and German, written by hand."""

from __future__ import annotations

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
