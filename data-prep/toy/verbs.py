"""Verbs, modals, adverbs and conjunctions of the toy language."""

from __future__ import annotations

from dataclasses import dataclass

from toy.nouns import table_rows

# english base/he-form/past [+ particle] | german [prefix+]infinitive/er-form/participle |
# objects: none, acc, dat or both | kinds of the accusative object | further traits:
#   animal  an animal can do it      place  may be said with a place   for  may be done for someone
#   with    may be done with someone   sein  perfect with "sein"       nopast  past = base form
_VERBS = """
buy/buys/bought | kaufen/kauft/gekauft | acc | thing food text vehicle animal | for
sell/sells/sold | verkaufen/verkauft/verkauft | acc | thing food text vehicle animal |
see/sees/saw | sehen/sieht/gesehen | acc | person animal thing vehicle text | animal place
find/finds/found | finden/findet/gefunden | acc | person animal thing food text | animal place
look for/looks for/looked for | suchen/sucht/gesucht | acc | person animal thing text | place
love/loves/loved | lieben/liebt/geliebt | acc | person animal |
paint/paints/painted | malen/malt/gemalt | acc | person animal thing food vehicle | for place
draw/draws/drew | zeichnen/zeichnet/gezeichnet | acc | person animal thing vehicle | for
wash/washes/washed | waschen/wäscht/gewaschen | acc | clothing vehicle animal food | place
carry/carries/carried | tragen/trägt/getragen | acc | animal thing food |
eat/eats/ate | essen/isst/gegessen | acc | food | animal place
read/reads/read | lesen/liest/gelesen | acc | text | place nopast
write/writes/wrote | schreiben/schreibt/geschrieben | acc | text | for place
repair/repairs/repaired | reparieren/repariert/repariert | acc | vehicle device | for
visit/visits/visited | besuchen/besucht/besucht | acc | person place |
hear/hears/heard | hören/hört/gehört | acc | person animal | animal place
describe/describes/described | beschreiben/beschreibt/beschrieben | acc | person animal thing |
forget/forgets/forgot | vergessen/vergisst/vergessen | acc | person thing text |
lose/loses/lost | verlieren/verliert/verloren | acc | thing text animal | place
need/needs/needed | brauchen/braucht/gebraucht | acc | person thing vehicle |
hide/hides/hid | verstecken/versteckt/versteckt | acc | thing food text | place
feed/feeds/fed | füttern/füttert/gefüttert | acc | animal | place
open/opens/opened | auf+machen/macht/aufgemacht | acc | openable |
close/closes/closed | zu+machen/macht/zugemacht | acc | openable |
call/calls/called | an+rufen/ruft/angerufen | acc | person |
invite/invites/invited | ein+laden/lädt/eingeladen | acc | person |
pick/picks/picked + up | ab+holen/holt/abgeholt | acc | person vehicle |
turn/turns/turned + on | ein+schalten/schaltet/eingeschaltet | acc | device |
turn/turns/turned + off | aus+schalten/schaltet/ausgeschaltet | acc | device |
try/tries/tried + on | an+probieren/probiert/anprobiert | acc | clothing |
wake/wakes/woke + up | auf+wecken/weckt/aufgeweckt | acc | person animal | animal
throw/throws/threw + away | weg+werfen/wirft/weggeworfen | acc | food text thing |
tidy/tidies/tidied + up | auf+räumen/räumt/aufgeräumt | acc | room |
help/helps/helped | helfen/hilft/geholfen | dat | | place
thank/thanks/thanked | danken/dankt/gedankt | dat | |
follow/follows/followed | folgen/folgt/gefolgt | dat | | animal sein
trust/trusts/trusted | vertrauen/vertraut/vertraut | dat | |
answer/answers/answered | antworten/antwortet/geantwortet | dat | |
listen to/listens to/listened to | zu+hören/hört/zugehört | dat | | animal
give/gives/gave | geben/gibt/gegeben | both | thing food text animal |
show/shows/showed | zeigen/zeigt/gezeigt | both | thing text vehicle animal |
send/sends/sent | schicken/schickt/geschickt | both | thing text food |
bring/brings/brought | bringen/bringt/gebracht | both | thing text food |
lend/lends/lent | leihen/leiht/geliehen | both | thing text vehicle |
sleep/sleeps/slept | schlafen/schläft/geschlafen | none | | animal place
laugh/laughs/laughed | lachen/lacht/gelacht | none | | place with
dance/dances/danced | tanzen/tanzt/getanzt | none | | place with
sing/sings/sang | singen/singt/gesungen | none | | animal place with
work/works/worked | arbeiten/arbeitet/gearbeitet | none | | place with
play/plays/played | spielen/spielt/gespielt | none | | animal place with
wait/waits/waited | warten/wartet/gewartet | none | | animal place
swim/swims/swam | schwimmen/schwimmt/geschwommen | none | | animal sein
stay/stays/stayed | bleiben/bleibt/geblieben | none | | animal place sein
arrive/arrives/arrived | an+kommen/kommt/angekommen | none | | sein
get up/gets up/got up | auf+stehen/steht/aufgestanden | none | | sein
fall asleep/falls asleep/fell asleep | ein+schlafen/schläft/eingeschlafen | none | | animal sein
come back/comes back/came back | zurück+kommen/kommt/zurückgekommen | none | | animal sein
"""

# english base/he-form/past | german infinitive/ich-form/er-form/participle
_WITH_A_CLAUSE = """
know/knows/knew | wissen/weiß/weiß/gewusst
say/says/said | sagen/sage/sagt/gesagt
believe/believes/believed | glauben/glaube/glaubt/geglaubt
hope/hopes/hoped | hoffen/hoffe/hofft/gehofft
try/tries/tried | versuchen/versuche/versucht/versucht
"""

# english base/he-form | german ich-form/er-form/plural
_MODALS = """
can/can | kann/kann/können
must/must | muss/muss/müssen
should/should | sollte/sollte/sollten
want to/wants to | will/will/wollen
will/will | werde/wird/werden
"""


@dataclass(frozen=True)
class Verb:
    """A verb with the words that it combines with; see the legend of the table."""

    english: str
    english_he: str
    english_past: str
    english_particle: str
    german_prefix: str  # what a separable verb begins with: an + rufen
    german: str  # infinitive without the prefix
    german_ich: str
    german_er: str  # without the prefix
    german_participle: str
    objects: str
    object_kinds: frozenset[str]
    traits: frozenset[str]


@dataclass(frozen=True)
class Modal:
    """A modal verb, or the auxiliary of the future; "want to" is one in German only."""

    english: str
    english_he: str
    german_ich: str
    german_er: str
    german_plural: str


def _ich(infinitive: str) -> str:
    return (infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]) + "e"


def _verb(english: str, german: str, objects: str, kinds: str, traits: str) -> Verb:
    forms, _, particle = english.partition(" + ")
    infinitive, er, participle = german.split("/")
    prefix, _, infinitive = infinitive.rpartition("+")
    return Verb(
        *(*forms.split("/"), particle),
        *(prefix, infinitive, _ich(infinitive), er, participle),
        *(objects, frozenset(kinds.split()), frozenset(traits.split())),
    )


VERBS = tuple(_verb(*row) for row in table_rows(_VERBS))
_NONE: frozenset[str] = frozenset()
*SAYING_VERBS, TRYING = (
    Verb(*english.split("/"), "", "", *german.split("/"), "none", _NONE, _NONE)
    for english, german in table_rows(_WITH_A_CLAUSE)
)
MODALS = tuple(
    Modal(*english.split("/"), *german.split("/")) for english, german in table_rows(_MODALS)
)
FUTURE = MODALS[-1]

PRESENT_TIMES = (("today", "heute"), ("now", "jetzt"), ("every day", "jeden Tag"))
FUTURE_TIMES = (("tomorrow", "morgen"), ("soon", "bald"), ("tonight", "heute Abend"))
PAST_TIMES = (("yesterday", "gestern"), ("last week", "letzte Woche"), ("on Sunday", "am Sonntag"))
FREQUENCIES = (("often", "oft"), ("always", "immer"), ("never", "nie"), ("sometimes", "manchmal"))
CONJUNCTIONS = (("because", "weil"), ("although", "obwohl"), ("while", "während"))
QUESTION_WORDS = (("why", "warum"), ("when", "wann"))
PLACES = (("in", "in"), ("behind", "hinter"), ("in front of", "vor"), ("next to", "neben"))
