"""Nouns, names and adjectives of the toy language."""

from __future__ import annotations

from dataclasses import dataclass

# english singular/plural | gender | german nominative/genitive/plural | what it is
_NOUNS = """
man/men | m | Mann/Mannes/Männer | person
woman/women | f | Frau/Frau/Frauen | person
child/children | n | Kind/Kindes/Kinder | person
girl/girls | n | Mädchen/Mädchens/Mädchen | person
boy/boys | m | Junge/Jungen/Jungen | person
teacher/teachers | m | Lehrer/Lehrers/Lehrer | person
student/students | m | Student/Studenten/Studenten | person
doctor/doctors | m | Arzt/Arztes/Ärzte | person
farmer/farmers | m | Bauer/Bauern/Bauern | person
baker/bakers | m | Bäcker/Bäckers/Bäcker | person
neighbour/neighbours | m | Nachbar/Nachbarn/Nachbarn | person
friend/friends | m | Freund/Freundes/Freunde | person
mother/mothers | f | Mutter/Mutter/Mütter | person
father/fathers | m | Vater/Vaters/Väter | person
sister/sisters | f | Schwester/Schwester/Schwestern | person
brother/brothers | m | Bruder/Bruders/Brüder | person
daughter/daughters | f | Tochter/Tochter/Töchter | person
son/sons | m | Sohn/Sohnes/Söhne | person
aunt/aunts | f | Tante/Tante/Tanten | person
uncle/uncles | m | Onkel/Onkels/Onkel | person
queen/queens | f | Königin/Königin/Königinnen | person
guest/guests | m | Gast/Gastes/Gäste | person
dog/dogs | m | Hund/Hundes/Hunde | animal
cat/cats | f | Katze/Katze/Katzen | animal
horse/horses | n | Pferd/Pferdes/Pferde | animal
cow/cows | f | Kuh/Kuh/Kühe | animal
bird/birds | m | Vogel/Vogels/Vögel | animal
mouse/mice | f | Maus/Maus/Mäuse | animal
bear/bears | m | Bär/Bären/Bären | animal
rabbit/rabbits | n | Kaninchen/Kaninchens/Kaninchen | animal
apple/apples | m | Apfel/Apfels/Äpfel | food
pear/pears | f | Birne/Birne/Birnen | food
cake/cakes | m | Kuchen/Kuchens/Kuchen | food
egg/eggs | n | Ei/Eies/Eier | food
potato/potatoes | f | Kartoffel/Kartoffel/Kartoffeln | food
sausage/sausages | f | Wurst/Wurst/Würste | food
cookie/cookies | m | Keks/Kekses/Kekse | food
book/books | n | Buch/Buches/Bücher | text
letter/letters | m | Brief/Briefes/Briefe | text openable
newspaper/newspapers | f | Zeitung/Zeitung/Zeitungen | text
poem/poems | n | Gedicht/Gedichtes/Gedichte | text
novel/novels | m | Roman/Romans/Romane | text
table/tables | m | Tisch/Tisches/Tische | thing
chair/chairs | m | Stuhl/Stuhls/Stühle | thing
lamp/lamps | f | Lampe/Lampe/Lampen | thing device
radio/radios | n | Radio/Radios/Radios | thing device
camera/cameras | f | Kamera/Kamera/Kameras | thing device
cup/cups | f | Tasse/Tasse/Tassen | thing
knife/knives | n | Messer/Messers/Messer | thing
key/keys | m | Schlüssel/Schlüssels/Schlüssel | thing
picture/pictures | n | Bild/Bildes/Bilder | thing
flower/flowers | f | Blume/Blume/Blumen | thing
gift/gifts | n | Geschenk/Geschenks/Geschenke | thing openable
bottle/bottles | f | Flasche/Flasche/Flaschen | thing openable
suitcase/suitcases | m | Koffer/Koffers/Koffer | thing openable
box/boxes | f | Kiste/Kiste/Kisten | thing openable
hat/hats | m | Hut/Hutes/Hüte | thing clothing
coat/coats | m | Mantel/Mantels/Mäntel | thing clothing
shirt/shirts | n | Hemd/Hemdes/Hemden | thing clothing
dress/dresses | n | Kleid/Kleides/Kleider | thing clothing
jacket/jackets | f | Jacke/Jacke/Jacken | thing clothing
car/cars | n | Auto/Autos/Autos | vehicle
bicycle/bicycles | n | Fahrrad/Fahrrads/Fahrräder | vehicle
ship/ships | n | Schiff/Schiffes/Schiffe | vehicle
boat/boats | n | Boot/Bootes/Boote | vehicle
truck/trucks | m | Lastwagen/Lastwagens/Lastwagen | vehicle
garden/gardens | m | Garten/Gartens/Gärten | place room
kitchen/kitchens | f | Küche/Küche/Küchen | place room
room/rooms | n | Zimmer/Zimmers/Zimmer | place room
house/houses | n | Haus/Hauses/Häuser | place room
cellar/cellars | m | Keller/Kellers/Keller | place room
school/schools | f | Schule/Schule/Schulen | place
church/churches | f | Kirche/Kirche/Kirchen | place
forest/forests | m | Wald/Waldes/Wälder | place
city/cities | f | Stadt/Stadt/Städte | place
village/villages | n | Dorf/Dorfes/Dörfer | place
park/parks | m | Park/Parks/Parks | place
hotel/hotels | n | Hotel/Hotels/Hotels | place
"""

NAMES = ("Anna", "Peter", "Maria", "Paul", "Clara", "Martin", "Julia", "Thomas", "Eva", "Simon")

# english | german | german stem before an ending | what it can be said of
_ADJECTIVES = """
old | alt | alt | person animal thing text vehicle place
young | jung | jung | person animal
big | groß | groß | animal thing food vehicle place
small | klein | klein | person animal thing food vehicle place
new | neu | neu | thing text vehicle
beautiful | schön | schön | person animal thing text vehicle place
good | gut | gut | text food
friendly | freundlich | freundlich | person animal
clever | klug | klug | person animal
tired | müde | müd | person animal
lazy | faul | faul | person animal
brave | mutig | mutig | person animal
rich | reich | reich | person
poor | arm | arm | person
famous | berühmt | berühmt | person text
hungry | hungrig | hungrig | person animal
happy | glücklich | glücklich | person
strong | stark | stark | person animal
quiet | ruhig | ruhig | person animal place
red | rot | rot | thing vehicle
green | grün | grün | thing vehicle
blue | blau | blau | thing vehicle
black | schwarz | schwarz | animal thing vehicle
white | weiß | weiß | animal thing vehicle
expensive | teuer | teur | thing text food vehicle
cheap | billig | billig | thing text food vehicle
heavy | schwer | schwer | thing vehicle
dark | dunkel | dunkl | place
fresh | frisch | frisch | food
cold | kalt | kalt | food place
long | lang | lang | text
boring | langweilig | langweilig | text
"""


@dataclass(frozen=True)
class Noun:
    """A countable noun; `kinds` says what it is (person, food, openable, ...)."""

    english: str
    english_plural: str
    gender: str  # m, f or n
    german: str
    german_genitive: str
    german_plural: str
    kinds: frozenset[str]

    @property
    def is_weak(self) -> bool:
        """Weak declension: "den Studenten" is accusative singular or dative plural."""
        return self.gender == "m" and self.german_genitive.endswith("n")


@dataclass(frozen=True)
class Adjective:
    """An adjective; `german_stem` takes the endings (teuer: ein teur-es Auto)."""

    english: str
    german: str
    german_stem: str
    kinds: frozenset[str]


def table_rows(table: str) -> list[list[str]]:
    """The rows of a table above, cell by cell."""
    return [[cell.strip() for cell in row.split("|")] for row in table.strip().splitlines()]


NOUNS = tuple(
    Noun(*english.split("/"), gender, *german.split("/"), frozenset(kinds.split()))
    for english, gender, german, kinds in table_rows(_NOUNS)
)
ADJECTIVES = tuple(
    Adjective(english, german, stem, frozenset(kinds.split()))
    for english, german, stem, kinds in table_rows(_ADJECTIVES)
)


def nouns_of(kinds: frozenset[str]) -> tuple[Noun, ...]:
    """The nouns of at least one of `kinds`, in the order of the table."""
    return tuple(noun for noun in NOUNS if noun.kinds & kinds)


def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that can be said of a noun, in the order of the table."""
    return tuple(adjective for adjective in ADJECTIVES if adjective.kinds & noun.kinds)
