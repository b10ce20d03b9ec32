"""Comparisons against sacrebleu's own command, and runs that must not be compared."""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys

import pytest
from sacrebleu.metrics import BLEU

from transformer_plugin.cli import main

WORDS = ["the", "cat", "dog", "sees", "runs", "over", "green", "red", "field", "house", "and"]


def sentences(count=60, seed=1):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(5, 14))) for _ in range(count)]


def noisy(lines, share, seed):
    """The lines with a share of their words exchanged."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split())
        for line in lines
    ]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """ref, and the translations good, similar and bad."""
    folder = tmp_path_factory.mktemp("texts")
    references = sentences()
    write(folder / "ref", references)
    for seed, (name, share) in enumerate([("good", 0.2), ("similar", 0.22), ("bad", 0.5)]):
        write(folder / name, noisy(references, share, seed))
    return folder


@pytest.fixture
def scored(texts, tmp_path):
    """scored(NAME, translations, ...) is a run's folder that recipes/score.sh would leave."""

    def make(name, translations="good", reference=None, *flags):
        run = tmp_path / "runs" / name
        write(run / "hypotheses.txt", (texts / translations).read_text().splitlines())
        status = main(
            ["score", "--hypotheses", str(run / "hypotheses.txt"), "--output",
             str(run / "score.json"), "--reference", str(reference or texts / "ref"), *flags]
        )  # fmt: skip
        assert status == 0
        return run

    return make


def compare(*words):
    return main(["compare", *map(str, words)])


def sacrebleu(texts, *words):
    """What sacrebleu's own command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", "ref", "-i", "good", "similar", "bad", *words],
        cwd=texts, capture_output=True, encoding="utf-8", check=True,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    return done.stdout


def test_scores_of_another_set_than_the_translations_are_refused(scored, capsys):
    run = scored("a", "good", None, "--set", "test")
    (run / "generate.log").write_text("D-0\t-1\ta\nGenerate valid with beam=4: BLEU4 = 1\n")
    assert compare(run) == 2
    said = capsys.readouterr().err
    assert f"{run / 'score.json'} is of the test set, and hypotheses.txt of valid: score" in said
    (run / "generate.log").write_text("Generate test with beam=4: BLEU4 = 1\n")
    assert compare(run) == 0


def test_it_agrees_with_sacrebleus_command(texts, tmp_path):
    systems = [texts / name for name in ("good", "similar", "bad")]
    output = tmp_path / "comparison.json"
    words = ("--reference", texts / "ref", "--samples", 200, "--output", output)
    assert compare(*systems, *words) == 0
    tests = json.loads(output.read_text())["tests"]
    for test, flag, metrics in (("bootstrap", "bs", ["bleu"]),
                                ("randomisation", "ar", ["bleu", "chrf"])):  # fmt: skip
        theirs = json.loads(sacrebleu(
            texts, "-m", *metrics, f"--paired-{flag}", f"--paired-{flag}-n", "200",
            "--format", "json"))  # fmt: skip
        for one, ours in zip(theirs, tests[test]["systems"], strict=True):
            assert one["BLEU"] == ours["bleu"]
            assert "chrf" not in metrics or one["chrF2"] == ours["chrf"]
    # sacrebleu 2.6 has no JSON of chrF's bootstrap: from its table
    table = sacrebleu(
        texts, "-m", "chrf", "--paired-bs", "--paired-bs-n", "200", "-w", "6", "--format", "text"
    )
    table = re.sub(r"\x1b\[\d+m", "", table)
    theirs = re.findall(r"(\d+\.\d{6}) \((\d+\.\d{6}) ± (\d+\.\d{6})\)", table)
    ours = [system["chrf"] for system in tests["bootstrap"]["systems"]]
    expected = [tuple(f"{one[name]:.6f}" for name in ("score", "mean", "ci")) for one in ours]
    assert theirs == expected and len(theirs) == 3
    assert re.findall(r"p = (\d\.\d+)", table) == [f"{one['p_value']:.4f}" for one in ours[1:]]
    assert f"{tests['bootstrap']['signatures']['chrf']}" in table


def test_scored_runs_know_their_references(scored, capsys):
    runs = [scored("one", "good"), scored("other", "bad")]
    capsys.readouterr()
    assert compare(*runs, "--samples", 100) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^one \(baseline\) +\d", printed, flags=re.MULTILINE)
    found = re.findall(r"^other .* p = (0\.\d+) \(bootstrap\) +p = (0\.\d+)", printed, re.MULTILINE)
    assert len(found) == 2 and all(float(p) < 0.05 for pair in found for p in pair)
    assert "ar:100" in printed and "bs:100" in printed


def test_equal_translations_do_not_differ(scored, tmp_path):
    output = tmp_path / "c.json"
    assert compare(scored("one"), scored("same"), "--samples", 50, "--output", output) == 0
    tests = json.loads(output.read_text())["tests"]
    assert tests["randomisation"]["systems"][1]["bleu"]["p_value"] > 0.01
    for test in tests.values():
        assert [test["systems"][1][name]["p_value"] for name in ("bleu", "chrf")] == [1, 1]
    one, same = tests["bootstrap"]["systems"]
    assert one["bleu"]["score"] == same["bleu"]["score"]


def test_seeds_have_a_mean_and_a_deviation(scored, texts, tmp_path, capsys):
    for system, names in (("a", ["good", "similar"]), ("b", ["bad", "similar"])):
        for seed, name in zip((2, 10), names, strict=True):
            scored(f"{system}/seed{seed}", name)
    output = tmp_path / "c.json"
    capsys.readouterr()
    a, b = tmp_path / "runs/a", tmp_path / "runs/b"
    assert compare(a, b, "--test", "bootstrap", "--samples", 100, "--output", output) == 0
    found = json.loads(output.read_text())
    references = (texts / "ref").read_text().splitlines()
    bleu = {
        name: BLEU().corpus_score((texts / name).read_text().splitlines(), [references]).score
        for name in ("good", "similar", "bad")
    }
    first = found["systems"][0]["bleu"]
    assert first["scores"] == pytest.approx([bleu["good"], bleu["similar"]])
    assert first["mean"] == pytest.approx((bleu["good"] + bleu["similar"]) / 2)
    assert first["deviation"] == pytest.approx(statistics.stdev(first["scores"]))
    assert f"{first['mean']:.2f} ± {first['deviation']:.2f}" in capsys.readouterr().out
    tested = found["tests"]["bootstrap"]["systems"][0]["bleu"]["score"]
    assert tested == pytest.approx(first["mean"])
    scored("a/seed3", "bad")  # left by an earlier command
    assert compare(a, "--seeds", 10, 2, "--output", output) == 0
    assert json.loads(output.read_text())["systems"][0]["bleu"]["scores"] == first["scores"]
    assert compare(a, "--seeds", 2, 4) == 2
    assert "there is no run of seed 4" in capsys.readouterr().err


def test_only_the_seeds_asked_for_are_compared(scored, tmp_path, capsys):
    run, output = scored("a", "similar"), tmp_path / "c.json"
    for seed, name in ((1, "good"), (2, "bad"), (3, "similar")):
        scored(f"a/seeds/seed{seed}", name)
    counts = []
    for words in ([run, "--seeds", 1, 2], [run / "seeds"], [run]):
        capsys.readouterr()
        assert compare(*words, "--output", output) == 0
        counts.append(len(json.loads(output.read_text())["systems"][0]["bleu"]["scores"]))
    assert counts == [2, 3, 1]
    assert f"{run} is a run itself; to compare its seeds, give {run}/seeds\n" in (
        capsys.readouterr().out
    )
    assert compare(run, "--seeds", 1, 4) == 2
    assert f"{run}: there is no run of seed 4" in capsys.readouterr().err


def test_one_run_has_scores_and_no_test(scored, capsys):
    run = scored("one")
    capsys.readouterr()
    assert compare(run) == 0
    printed = capsys.readouterr().out
    assert "BLEU" in printed and "p =" not in printed and "baseline" not in printed


def test_lower_case_is_that_of_the_scores(scored, tmp_path):
    runs = [scored("one", "good", None, "--lowercase"), scored("two", "bad", None, "--lowercase")]
    output = tmp_path / "c.json"
    assert compare(*runs, "--samples", 10, "--output", output) == 0
    tests = json.loads(output.read_text())["tests"]
    assert "case:lc" in tests["bootstrap"]["signatures"]["bleu"]


@pytest.mark.parametrize("fault", ["test set", "case", "seeds", "twice", "gone", "changed",
                                   "unscored", "parser", "shorter", "no such", "broken",
                                   "other reference"])  # fmt: skip
def test_what_does_not_compare_is_refused(fault, scored, texts, tmp_path, capsys):
    one, words = scored("one"), []
    if fault == "test set":
        other = scored("two", "good", write(tmp_path / "other", sentences(60, seed=9)))
        message = "one and .*two were scored on different test sets"
    elif fault == "case":
        other, message = scored("two", "good", None, "--lowercase"), "different treatments of case"
    elif fault == "seeds":
        scored("two/seeds/seed1"), scored("two/seeds/seed2")
        other, message = tmp_path / "runs/two", "one has 1, two has 2"
    elif fault == "twice":
        other, message = one / ".." / "one", "given twice"
    elif fault in ("gone", "changed"):
        reference = write(tmp_path / "gone", sentences())
        one, other = scored("three", "good", reference), scored("two", "bad", reference)
        reference.unlink() if fault == "gone" else write(reference, sentences(60, seed=9))
        message = "gone: the references are missing or have changed .* --reference"
    elif fault == "unscored":
        other, message = scored("two"), "two: no score.json names its references"
        (other / "score.json").unlink()
    elif fault == "parser":
        other, message = scored("two"), "two: a parser has F1; BLEU and chrF are compared here"
        (other / "score.json").write_text('{"f1": 90.0, "signature": "EVALB"}')
    elif fault == "shorter":
        other = write(tmp_path / "short", ["one line"])
        words, message = ["--reference", texts / "ref"], "short has 1 lines, .*ref 60"
    elif fault == "no such":
        other, message = tmp_path / "nothing", "nothing: no such run"
    elif fault == "broken":
        other, message = scored("two"), "score.json: not what transformer-plugin score writes"
        (other / "score.json").write_text('{"reference": 3, "signature": ""}')
    else:
        other = scored("two")
        words = ["--reference", write(tmp_path / "other", sentences(60, seed=9))]
        message = "other is not the reference that .*one names"
    capsys.readouterr()
    output = tmp_path / "c.json"
    assert compare(one, other, *words, "--output", output) == 2
    said = capsys.readouterr().err
    assert re.search(message, said) and said.count("\n") == 1
    assert not output.exists()
