"""The filtered newstest2014: cut from the full set where sacrebleu has it, else a clear line."""

from __future__ import annotations

import json
import random
import socket

import pytest
import sacrebleu
from sacremoses import MosesTokenizer

from transformer_plugin.cli import main
from transformer_plugin.scoring import filtered_test_set
from transformer_plugin.scoring.compound_split import tokenised_bleu

WORDS = [*("der", "die", "das", "Haus", "Baum", "geht"), *("schnell", "&", '"gut"', "Straße")]


@pytest.fixture
def full():
    """3,003 references, and translations of them."""
    dice = random.Random(0)
    references = [" ".join(dice.choices(WORDS, k=9)) + f" {i % 2500}" for i in range(3003)]
    hypotheses = [r.replace("Haus", "Hof") if i % 3 else r for i, r in enumerate(references)]
    return hypotheses, references


@pytest.fixture
def kept(tmp_path, monkeypatch, full):
    """Puts a filtered set of 2,737 sentences where sacrebleu keeps it; returns its lines."""
    lines = sorted(random.Random(1).sample(range(3003), 2737))
    path = tmp_path / "wmt14.en-de.ref"
    escaped = (full[1][i].replace("&", "&amp;").replace('"', "&quot;") for i in lines)
    path.write_text("".join(f"{line} \n" for line in escaped), encoding="utf-8")
    dataset = sacrebleu.dataset.DATASETS["wmt14"]
    monkeypatch.setattr(dataset, "get_reference_files", lambda pair: [str(path)])
    return lines


def score_all(tmp_path, hypotheses, references):
    for name, lines in (("hyp", hypotheses), ("ref", references)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    output = tmp_path / "score.json"
    status = main(
        ["score", "--hypotheses", str(tmp_path / "hyp"), "--reference", str(tmp_path / "ref"),
         "--output", str(output), "--all"]
    )  # fmt: skip
    assert status == 0
    return json.loads(output.read_text(encoding="utf-8"))["variants"]


def test_its_score_is_that_of_its_lines_alone(tmp_path, capsys, full, kept):
    hypotheses, references = full
    found = score_all(tmp_path, hypotheses, references)["filtered"]
    expected = sacrebleu.corpus_bleu(
        [hypotheses[i] for i in kept], [[references[i] for i in kept]]
    ).score
    assert found["score"] == pytest.approx(expected, abs=1e-9)
    assert "tok:13a" in found["signature"] and found["signature"].endswith("sentences:2737")
    assert f"filtered {expected:.2f}" in capsys.readouterr().out


def test_other_references_than_newstest2014s(tmp_path, capsys, full, kept):
    hypotheses, references = full
    references[kept[5]] = "something else"
    assert "filtered" not in score_all(tmp_path, hypotheses, references)
    assert "not newstest2014's" in capsys.readouterr().out


def test_another_test_set_has_none(tmp_path, capsys):
    variants = score_all(tmp_path, ["ein Haus"], ["ein Haus"])
    assert {"tokenised", "compound_split", "compound_split_quotes", "intl"} == variants.keys()
    assert len({found["signature"] for found in variants.values()}) == 4
    assert "filtered: not scored, only newstest2014 has" in capsys.readouterr().out


@pytest.mark.parametrize("error", [OSError("no route to host"), SystemExit(1)])
def test_without_internet_the_other_variants_remain(tmp_path, capsys, monkeypatch, full, error):
    def fail(*_):
        raise error

    dataset = sacrebleu.dataset.DATASETS["wmt14"]
    monkeypatch.setattr(dataset, "get_reference_files", fail)
    assert "compound_split" in score_all(tmp_path, *full)
    printed = capsys.readouterr().out
    assert "filtered: not scored, sacrebleu cannot fetch it" in printed
    assert "sacrebleu -t wmt14 -l en-de" in printed


def test_a_server_that_does_not_answer_is_given_up(tmp_path, monkeypatch, full):
    """sacrebleu's download has no limit of its own."""
    limits = []

    def fetch(_pair):
        limits.append(socket.getdefaulttimeout())
        raise TimeoutError

    monkeypatch.setattr(sacrebleu.dataset.DATASETS["wmt14"], "get_reference_files", fetch)
    socket.setdefaulttimeout(300)
    try:
        assert "filtered" not in score_all(tmp_path, *full)
        assert len(limits) == 1 and 0 < limits[0] <= 60
        assert socket.getdefaulttimeout() == 300
    finally:
        socket.setdefaulttimeout(None)


@pytest.mark.parametrize("language", ["de", "fr"])
def test_the_variants_are_those_of_the_language(tmp_path, monkeypatch, language):
    """Moses' tokens, and the pair of the filtered set."""
    pairs = []
    lines = ["l'homme qu'on voit dans l'auberge d'à côté", *["phrase"] * 3002]
    monkeypatch.setattr(filtered_test_set, "_filtered_references",
                        lambda pair: pairs.append(pair) or lines[:1])  # fmt: skip
    texts = {"hyp": ["l'homme que l'on voit dans l'auberge", *lines[1:]], "ref": lines}
    for name, text in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    words = ["--hypotheses", tmp_path / "hyp", "--reference", tmp_path / "ref"]
    words += ["--output", tmp_path / "s.json", "--language", language, "--all"]
    assert main(["score", *map(str, words)]) == 0
    found = json.loads((tmp_path / "s.json").read_text())["variants"]
    moses = MosesTokenizer(lang=language)
    sides = [[moses.tokenize(line, return_str=True) for line in text] for text in texts.values()]
    assert found["tokenised"]["score"] == pytest.approx(tokenised_bleu(*sides)[0])
    assert found["tokenised"]["signature"].endswith(f"|moses:{language}")
    assert pairs == [f"en-{language}"] and "filtered" in found
