"""The toy grammar's German, against sentences and declensions written by hand."""

from __future__ import annotations

import pytest
from german_sentences import SENTENCES, the

import toy.english
import toy.german
from toy.inflection import noun_form, phrase_words
from toy.nouns import ADJECTIVES, NOUNS
from toy.verbs import SAYING_VERBS, VERBS

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


@pytest.mark.parametrize("sentence, english, german", SENTENCES, ids=lambda x: None)
def test_a_sentence_in_both_languages(sentence, english, german):
    assert toy.english.say(sentence) == english
    assert toy.german.say(sentence) == german


def test_the_grammar_has_about_two_hundred_stems():
    stems = len(NOUNS) + len(ADJECTIVES) + len(VERBS) + len(SAYING_VERBS)
    assert 160 <= stems <= 240
