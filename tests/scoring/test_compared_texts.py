"""What compare prints of its tests, and texts that it refuses."""

import json
import re

import pytest

from transformer_plugin.cli import main

REFERENCES = ["the cat sees the dog", "a house is green", "and the dog runs over the field"] * 5


def test_the_interval_has_the_bootstrap_mean_in_its_middle(tmp_path, capsys):
    """And the width that it has in the file; sacrebleu writes it as mean and distance."""
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES))
    for name, word in (("one", "cat"), ("two", "the")):
        lines = [line.replace(word, "bird") + "\n" for line in REFERENCES]
        (tmp_path / name).write_text("".join(lines))
    words = [tmp_path / "one", tmp_path / "two", "--reference", tmp_path / "ref", "--samples", 100]
    assert main(["compare", *map(str, [*words, "--output", tmp_path / "c.json"])]) == 0
    printed = re.findall(r"95 %: (\S+) to (\S+)", capsys.readouterr().out)
    systems = json.loads((tmp_path / "c.json").read_text())["tests"]["bootstrap"]["systems"]
    found = [system[metric] for metric in ("bleu", "chrf") for system in systems]
    ends = [(one["mean"] - one["ci"], one["mean"] + one["ci"]) for one in found]
    assert printed == [(f"{low:.2f}", f"{high:.2f}") for low, high in ends]
    assert all(low < one["score"] < high for one, (low, high) in zip(found, ends, strict=True))


def test_subwords_are_refused(tmp_path, capsys):
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES))
    (tmp_path / "good").write_text("".join(f"{line}\n" for line in REFERENCES))
    lines = [line.replace("the", "t@@ he") + "\n" for line in REFERENCES]
    (tmp_path / "subwords").write_text("".join(lines))
    words = [tmp_path / "good", tmp_path / "subwords", "--reference", tmp_path / "ref"]
    assert main(["compare", *map(str, words)]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path / 'subwords'}:1: subwords in 10 of 15 lines" in said


def test_the_log_that_names_the_set_is_not_overwritten(tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    for path in (run / "hypotheses.txt", tmp_path / "ref"):
        path.write_text("".join(f"{line}\n" for line in REFERENCES))
    log = run / "generate.log"
    log.write_text("Generate test with beam=4: BLEU4 = 1\n")
    words = [run, "--reference", tmp_path / "ref", "--output", log]
    assert main(["compare", *map(str, words)]) == 2
    assert f"{log} would be read and overwritten" in capsys.readouterr().err
    assert log.read_text() == "Generate test with beam=4: BLEU4 = 1\n"


def test_a_reference_that_is_given_does_not_change_the_case_of_the_scores(tmp_path):
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES))
    for name, change in (("one", str.upper), ("two", str.title)):
        (tmp_path / name).mkdir()
        hypotheses = tmp_path / name / "hypotheses.txt"
        hypotheses.write_text("".join(f"{change(line)}\n" for line in REFERENCES))
        words = ["--hypotheses", hypotheses, "--reference", tmp_path / "ref", "--lowercase"]
        words += ["--output", tmp_path / name / "score.json"]
        assert main(["score", *map(str, words)]) == 0
    words = [tmp_path / "one", tmp_path / "two", "--reference", tmp_path / "ref", "--samples", 10]
    assert main(["compare", *map(str, [*words, "--output", tmp_path / "c.json"])]) == 0
    found = json.loads((tmp_path / "c.json").read_text())
    assert [system["bleu"]["mean"] for system in found["systems"]] == pytest.approx([100, 100])
    assert "case:lc" in found["tests"]["bootstrap"]["signatures"]["bleu"]


def test_runs_of_the_same_name_have_their_paths(tmp_path, capsys):
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES))
    runs = [tmp_path / "one/seed", tmp_path / "other/seed"]
    for run in runs:
        run.mkdir(parents=True)
        (run / "hypotheses.txt").write_text((tmp_path / "ref").read_text())
    words = [*runs, "--reference", tmp_path / "ref", "--samples", 10]
    assert main(["compare", *map(str, words)]) == 0
    printed = capsys.readouterr().out
    assert f"{runs[0]} (baseline)" in printed and f"\n{runs[1]} " in printed


def test_a_negative_number_of_samples_is_refused(tmp_path, capsys):
    (tmp_path / "text").write_text("a b c d\n")
    words = [tmp_path / "text", tmp_path / "text", "--reference", tmp_path / "text"]
    assert main(["compare", *map(str, words), "--samples", "-1"]) == 2
    assert "--samples must be at least 1, or 0" in capsys.readouterr().err
