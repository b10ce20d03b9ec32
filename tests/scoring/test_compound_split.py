"""The authors' BLEU against its four steps, done here without our functions."""

from __future__ import annotations

import json
import re

import pytest
import sacrebleu
from sacremoses import MosesTokenizer

from transformer_plugin.cli import main
from transformer_plugin.scoring.compound_split import authors_scores, split_hyphens

HYPOTHESES = [
    "Der Nord-Süd-Dialog ist “wichtig” & gut für alle.",
    "Ein E-Mail-Programm läuft heute auf dem Rechner.",
]
REFERENCES = [
    'Der Nord-Süd-Dialog ist "wichtig" & sehr gut für alle.',
    "Ein E-Mail-Dienst läuft heute auf dem alten Rechner.",
]


def run(tmp_path, hypotheses, references, *flags):
    (tmp_path / "hyp").write_text("\n".join(hypotheses) + "\n", encoding="utf-8")
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    output = tmp_path / "score.json"
    status = main(
        ["score", "--hypotheses", str(tmp_path / "hyp"), "--reference", str(tmp_path / "ref"),
         "--output", str(output), *flags]
    )  # fmt: skip
    return status, output


def by_hand(hypotheses, references, split=True):
    moses = MosesTokenizer(lang="de")
    sides = []
    for lines in ([re.sub("[“”]", '"', h) for h in hypotheses], references):
        tokens = [moses.tokenize(line, return_str=True) for line in lines]
        if split:
            tokens = [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line) for line in tokens]
        sides.append(tokens)
    return sacrebleu.corpus_bleu(sides[0], [sides[1]], tokenize="none", force=True).score


def test_every_variant_equals_the_steps(tmp_path, capsys):
    status, output = run(tmp_path, HYPOTHESES, REFERENCES, "--all")
    found = json.loads(output.read_text(encoding="utf-8"))
    split, plain = (by_hand(HYPOTHESES, REFERENCES, split=s) for s in (True, False))
    assert status == 0 and abs(split - plain) > 0.1
    assert found["variants"]["compound_split"]["score"] == pytest.approx(split, abs=0.01)
    assert found["variants"]["tokenised"]["score"] == pytest.approx(plain, abs=0.01)
    assert {"bleu", "chrf", "signature"} <= found.keys()
    assert "intl" in capsys.readouterr().out


def test_quotes_of_the_reference_count_only_where_they_are_kept(tmp_path):
    references = [r.replace('"wichtig"', "„wichtig“") for r in REFERENCES]
    _, output = run(tmp_path, HYPOTHESES, references, "--all")
    variants = json.loads(output.read_text(encoding="utf-8"))["variants"]
    expected = by_hand(HYPOTHESES, REFERENCES)
    assert variants["compound_split_quotes"]["score"] == pytest.approx(expected, abs=0.01)
    assert variants["compound_split"]["score"] < expected


def test_hyphens_between_single_letters_are_split_once():
    """As by the perl expression of the authors' script, s{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g."""
    found = split_hyphens(["a-b-c", "x-y z-", "ab-cd-ef"])
    at = " ##AT##-##AT## "
    assert found == [f"a{at}b-c", f"x{at}y z-", f"ab{at}cd{at}ef"]


@pytest.mark.parametrize("line", ["Nord ##AT##-##AT## Süd", "Nord @-@ Süd", "Nord@@ Süd"])
def test_split_text_is_refused(tmp_path, capsys, line):
    status, output = run(tmp_path, [line], ["Nord-Süd"], "--compound-split")
    assert status == 2 and "hyp:1" in capsys.readouterr().err and not output.exists()


@pytest.mark.parametrize("line", ["@-@ Süd", "Nord @-@", "Nord ##AT##-##AT## Süd"])
def test_a_split_reference_is_refused(tmp_path, capsys, line):
    status, output = run(tmp_path, ["Nord-Süd"] * 2, ["Nord-Süd", line], "--compound-split")
    assert status == 2 and "ref:2" in capsys.readouterr().err and not output.exists()


def test_only_the_hypotheses_punctuation_is_normalised():
    """As in the authors' script: a reference with its own ellipsis is matched by no hypothesis."""
    texts = {"er geht … und kommt nach Hause": False, "er geht und kommt nach Hause": True}
    for line, is_matched in texts.items():
        scores = authors_scores([line], [line], "de")
        assert (scores["tokenised"]["score"] > 99.9) == is_matched


def test_compound_split_alone_is_the_only_variant(tmp_path):
    status, output = run(tmp_path, HYPOTHESES, REFERENCES, "--compound-split")
    assert status == 0
    assert json.loads(output.read_text())["variants"].keys() == {"compound_split"}


@pytest.mark.parametrize("mark", "„“”‟«»‚‘’‛")
def test_each_quote_of_a_reference_is_ascii(mark):
    plain = '"' if mark in "„“”‟«»" else "'"
    references = [f"er sagt {mark}ja{mark} und geht nach Hause"]
    hypotheses = [references[0].replace(mark, plain)]
    found = authors_scores(hypotheses, references, "de")
    assert found["compound_split_quotes"]["score"] == pytest.approx(100)
