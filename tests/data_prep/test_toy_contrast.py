"""Contrastive pairs of the toy grammar, against sentences written by hand."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from fairseq_commands import REPO
from german_sentences import ADJECTIVE, CHILD, MAN, MODAL, RELATIVE_MAN, TODAY, VERB, the

from toy.contrast import mistakes
from toy.syntax import Attempt, Clause, Linked, Name, Pronoun, Question, Statement
from toy.verbs import TRYING

CAR, STUDENT = the("car", determiner="a", adjective="new"), the("student")

MADE = [
    (Statement(Clause(MAN, VERB["buy"], object=CAR, time=TODAY), "time"), {
        ("gender", "Heute kauft die Mann ein neues Auto.", 1),
        ("gender", "Heute kauft das Mann ein neues Auto.", 1),
        ("gender", "Heute kauft der Mann einen neuen Auto.", 2),
        ("gender", "Heute kauft der Mann eine neue Auto.", 2),
        ("case", "Heute kauft der Mann einem neuen Auto.", None),
        ("number", "Heute kaufen der Mann ein neues Auto.", 2),
        ("position", "Heute der Mann kauft ein neues Auto.", 2)}),
    (Linked(Clause(CHILD, VERB["laugh"]), ("because", "weil"),
            Clause(Name(("Anna", "Paul")), VERB["call"], object=Pronoun("he"))), {
        ("gender", "Der Kind lacht, weil Anna und Paul ihn anrufen.", 1),
        ("gender", "Die Kind lacht, weil Anna und Paul ihn anrufen.", 1),
        ("number", "Das Kind lachen, weil Anna und Paul ihn anrufen.", 1),
        ("number", "Das Kind lacht, weil Anna und Paul ihn anruft.", 2),
        ("position", "Das Kind lacht, weil Anna und Paul rufen ihn an.", 1)}),
    (Linked(Clause(Pronoun("I"), VERB["laugh"]), ("because", "weil"),
            Clause(STUDENT, VERB["help"], "past", receiver=the("woman")),
            subordinate_first=True), {
        ("gender", "Weil der Student dem Frau geholfen hat, lache ich.", 1),
        ("case", "Weil der Student die Frau geholfen hat, lache ich.", None),
        ("number", "Weil der Student der Frau geholfen haben, lache ich.", 4),
        ("position", "Weil der Student hat der Frau geholfen, lache ich.", 3),
        ("position", "Weil der Student der Frau geholfen hat, ich lache.", 1)}),
    (Statement(Clause(RELATIVE_MAN, None, adjective=ADJECTIVE["tired"])), {
        ("number", "Der Mann, der das Kind einlädt, sind müde.", 5)}),
    (Attempt(Clause(Pronoun("we"), TRYING), Clause(MAN, VERB["call"], object=CHILD)), {
        ("number", "Wir versucht, das Kind anzurufen.", 1)}),
    (Question(Clause(Pronoun("they"), VERB["see"], MODAL["should"], object=STUDENT)), set()),
]  # fmt: skip


@pytest.mark.parametrize("sentence, expected", MADE, ids=range(len(MADE)))
def test_the_mistakes_that_can_be_made(sentence, expected):
    made = mistakes(sentence)
    assert {(found.category, found.wrong, found.distance) for found in made} == expected
    assert len(made) == len(expected)


def test_the_table_is_of_the_test_set(tmp_path):
    command = [sys.executable, REPO / "data-prep" / "contrast.py", "--output", tmp_path / "c.tsv"]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([sys.executable, REPO / "data-prep" / "toy.py", "--output", tmp_path / "toy",
                    "--train", "1", "--valid", "1"], check=True, capture_output=True)  # fmt: skip
    texts = [(tmp_path / f"toy/test.{side}").read_text().splitlines() for side in ("en", "de")]
    test = dict(zip(*texts, strict=True))
    header, *rows = (line.split("\t") for line in (tmp_path / "c.tsv").read_text().splitlines())
    assert header == ["source", "right", "wrong", "category", "distance"]
    for source, right, wrong, _category, _distance in rows:
        assert test[source] == right != wrong
    counts = Counter(row[3] for row in rows)
    assert set(counts) == {"gender", "case", "number", "position"} and min(counts.values()) > 100
    assert len({tuple(row[:3]) for row in rows}) == len(rows)


def test_more_sentences_than_the_test_set_has_are_refused(tmp_path):
    command = [sys.executable, REPO / "data-prep" / "contrast.py", "--output", tmp_path / "c.tsv"]
    done = subprocess.run(
        [*command, "--sentences", "501"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2 and "from 1 to 500, the size of the test set" in done.stderr
    assert not (tmp_path / "c.tsv").exists()
