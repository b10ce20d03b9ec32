"""The toy corpus as a whole: sizes, no leak, one translation, the same bytes everywhere, and the
German word order read off the text by rules that know nothing of the generator's syntax."""

from __future__ import annotations

import re

import pytest
from corpus_files import PAIR, files_of

from toy.verbs import MODALS, SAYING_VERBS, TRYING, VERBS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """{split: [(english, german)]} of the default corpus."""
    from toy.corpus import SEED, SIZES, write_splits

    folder = tmp_path_factory.mktemp("toy")
    write_splits(folder, SEED, SIZES)
    return {
        split: list(
            zip(
                *(
                    (folder / f"{split}.{side}").read_text(encoding="utf-8").splitlines()
                    for side in ("en", "de")
                ),
                strict=True,
            )
        )
        for split in SIZES
    }


def finite_forms():
    verbs = (*VERBS, *SAYING_VERBS, TRYING)
    joined = {
        verb.german_prefix + form
        for verb in verbs
        for form in (verb.german, verb.german_ich, verb.german_er)
    }
    apart = {form for verb in verbs for form in (verb.german, verb.german_ich, verb.german_er)}
    auxiliaries = {
        form
        for modal in MODALS
        for form in (modal.german_ich, modal.german_er, modal.german_plural)
    }
    auxiliaries |= {"habe", "hat", "haben", "bin", "ist", "sind", "war", "waren"}
    return joined | auxiliaries, apart | auxiliaries


def test_sizes(corpus):
    assert {split: len(pairs) for split, pairs in corpus.items()} == {
        "train": 20_000,
        "valid": 500,
        "test": 500,
    }


def test_no_sentence_comes_twice_on_either_side(corpus):
    pairs = [pair for split in corpus.values() for pair in split]
    assert len({english for english, _ in pairs}) == len(pairs)
    assert len({german for _, german in pairs}) == len(pairs)


def test_sentences_are_short_and_well_formed(corpus):
    for english, german in corpus["train"] + corpus["test"]:
        assert 4 <= len(english.split()) <= 14, english
        for text in (english, german):
            assert re.fullmatch(r"[A-ZÄÖÜ][A-Za-zÄÖÜäöüß]*(?:,? [A-Za-zÄÖÜäöüß]+)*[.?]", text), text
        assert english[-1] == german[-1]


def test_every_word_of_the_test_set_is_seen_often_in_training(corpus):
    counts: dict[str, int] = {}
    for pair in corpus["train"]:
        for word in re.findall(r"\w+", " ".join(pair).lower()):
            counts[word] = counts.get(word, 0) + 1
    words = set(re.findall(r"\w+", " ".join(" ".join(pair) for pair in corpus["test"]).lower()))
    rare = [word for word in words if counts.get(word, 0) < 5]
    assert len(rare) <= len(words) // 100, rare


def test_subordinate_clauses_end_in_their_finite_verb(corpus):
    joined, _ = finite_forms()
    found = 0
    for _, german in corpus["train"]:
        for clause in re.split(r", |[.?]$", german):
            first = clause.split(" ")[0].lower()
            if first in ("weil", "obwohl", "während", "dass"):
                assert clause.split(" ")[-1] in joined, german
                found += 1
    assert found > 2_000


def test_statements_begin_with_a_finite_verb_after_a_time(corpus):
    """Verb second, seen after the fronted times, whose length is known."""
    _, apart = finite_forms()
    times = re.compile(
        r"(?:Heute Abend|Heute|Jetzt|Jeden Tag|Morgen|Bald|Gestern|Letzte Woche|"
        r"Am Sonntag) (\S+) "
    )
    found = [times.match(german) for _, german in corpus["train"]]
    verbs = [match.group(1) for match in found if match]
    assert len(verbs) > 300
    assert set(verbs) <= apart


def test_a_clause_has_its_prefix_last_or_its_verb_whole(corpus):
    """ "Er ruft sie an", "weil er sie anruft", "sie anzurufen", but never a prefix midway."""
    prefixes = {verb.german_prefix for verb in VERBS} - {"", "ein", "zu"}  # words of their own too
    found = 0
    for _, german in corpus["train"]:
        for clause in re.split(r", |[.?]$", german):
            words = clause.split(" ")
            places = [i for i, word in enumerate(words) if word in prefixes]
            for i in places:
                assert i == len(words) - 1, german
                found += 1
    assert found > 1_000


def test_the_same_bytes_whatever_the_hash_seed_and_locale(step, tmp_path):
    sizes = ("--train", 300, "--valid", 20, "--test", 20)
    for name, environment in (
        ("a", {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8"}),
        ("b", {"PYTHONHASHSEED": "2", "LC_ALL": "C", "PYTHONUTF8": "0"}),
    ):
        result = step("toy", "--output", tmp_path / name / "raw", *sizes, **environment)
        assert result.returncode == 0, result.stderr
    assert files_of(tmp_path / "a/raw") == files_of(tmp_path / "b/raw")
    step("toy", "--output", tmp_path / "c/raw", *sizes, "--seed", 2)
    assert files_of(tmp_path / "a/raw") != files_of(tmp_path / "c/raw")


def test_a_longer_training_set_keeps_the_test_set(step, tmp_path):
    for name, train in (("short", 50), ("long", 200)):
        step(
            "toy", "--output", tmp_path / name / "raw", "--train", train, "--valid", 9, "--test", 9
        )
    short, long = files_of(tmp_path / "short/raw"), files_of(tmp_path / "long/raw")
    assert short["test.de"] == long["test.de"] and short["valid.en"] == long["valid.en"]
    assert long["train.en"].startswith(short["train.en"])


def test_fetch_gives_the_default_corpus_in_either_direction(step, corpus, tmp_path):
    result = step("fetch", "toy", "--output", tmp_path / "raw", "--source", "de", "--target", "en")
    assert result.returncode == 0, result.stderr
    german = (tmp_path / "raw/test.de").read_text(encoding="utf-8").splitlines()
    assert german == [pair[1] for pair in corpus["test"]]


def test_other_languages_and_empty_splits_are_refused(refused, tmp_path):
    output = ("--output", tmp_path / "raw")
    assert "en, de" in refused("fetch", "toy", *output, "--source", "en", "--target", "fr")
    assert "at least one pair" in refused("toy", *output, "--test", 0)
    assert "two languages" in refused("fetch", "toy", *output, *PAIR[:3], "en")
