"""BLEU against its formula, and texts that must not be scored."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter

import pytest
import sacrebleu
from fairseq_commands import BIN, environment

from transformer_plugin.cli import main
from transformer_plugin.scoring import score as score_module
from transformer_plugin.scoring.score import score
from transformer_plugin.scoring.score_file import read_scores

HYPOTHESES = ["the cat sat on the mat today", "a dog runs over the green field"]
REFERENCES = ["the cat sat on a mat today", "a dog runs across the green field now"]


def bleu(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. (2002): geometric mean of clipped n-gram precisions, brevity penalty."""
    pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references, strict=True)]
    logs = 0.0
    for n in range(1, 5):
        found = total = 0
        for words in pairs:
            ours, theirs = (
                Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1)) for side in words
            )
            found += sum(min(count, theirs[gram]) for gram, count in ours.items())
            total += sum(ours.values())
        logs += math.log(found / total) / 4
    ours, theirs = sum(len(h) for h, _ in pairs), sum(len(r) for _, r in pairs)
    return 100 * math.exp(logs + min(0.0, 1 - theirs / ours))


def test_the_scores_are_written_whether_or_not_they_are_read(tmp_path):
    for name in ("hyp", "ref"):
        (tmp_path / name).write_text("a b c d e\n")
    command = f"transformer-plugin score --hypotheses {tmp_path}/hyp --reference {tmp_path}/ref"
    pipe = f"{BIN}/{command} --output {tmp_path}/score.json | true"
    subprocess.run(["bash", "-c", pipe], check=True, env=environment())
    assert "bleu" in json.loads((tmp_path / "score.json").read_text())


@pytest.fixture
def texts(tmp_path):
    """texts(hypotheses, references) runs the subcommand on them: its status and score.json.

    None: the hypotheses are there already.
    """

    def run(hypotheses: str | None, references: str):
        if hypotheses is not None:
            (tmp_path / "hyp").write_bytes(hypotheses.encode())
        (tmp_path / "ref").write_bytes(references.encode())
        output = tmp_path / "score.json"
        status = main(
            ["score", *("--hypotheses", str(tmp_path / "hyp")),
             *("--reference", str(tmp_path / "ref")), "--output", str(output)]
        )  # fmt: skip
        return status, output

    return run


def test_bleu_is_that_of_the_formula():
    assert score(HYPOTHESES, REFERENCES)["bleu"] == pytest.approx(bleu(HYPOTHESES, REFERENCES))
    swapped = score(REFERENCES, HYPOTHESES)["bleu"]
    assert swapped == pytest.approx(bleu(REFERENCES, HYPOTHESES))


def test_case_counts():
    assert score([h.title() for h in HYPOTHESES], REFERENCES)["bleu"] < 1


def test_case_does_not_count_in_lower_case():
    found = score([h.title() for h in HYPOTHESES], REFERENCES, lowercase=True)
    expected = bleu(*([line.lower() for line in side] for side in (HYPOTHESES, REFERENCES)))
    assert found["bleu"] == pytest.approx(expected) and "case:lc" in found["signature"]


def test_lower_case_holds_for_the_variants_too(tmp_path, monkeypatch):
    monkeypatch.setattr(score_module, "filtered_lines", lambda references, language: [0])
    titled = [h.title() for h in HYPOTHESES]
    for name, lines in (("hyp", titled), ("ref", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    paths = {"hypotheses": "hyp", "reference": "ref", "output": "score.json"}
    words = [word for option, name in paths.items() for word in (f"--{option}", tmp_path / name)]
    assert main(["score", *map(str, words), "--all", "--lowercase"]) == 0
    scores = json.loads((tmp_path / "score.json").read_text())
    found = scores["variants"]
    lowered = [line.lower() for line in REFERENCES]
    chrf = sacrebleu.corpus_chrf([line.lower() for line in HYPOTHESES], [lowered]).score
    assert scores["chrf"] == pytest.approx(chrf) and "case:lc" in scores["chrf_signature"]
    assert found["intl"]["score"] == pytest.approx(bleu(HYPOTHESES, REFERENCES))
    assert found["filtered"]["score"] == pytest.approx(bleu(HYPOTHESES[:1], REFERENCES[:1]))
    for name in ("tokenised", "compound_split"):  # there is no hyphen or quote to split
        assert found[name]["score"] == pytest.approx(bleu(HYPOTHESES, REFERENCES))
    assert len(found) == 5 and all("case:lc" in each["signature"] for each in found.values())


def test_the_file_holds_the_scores_and_their_signatures(texts, capsys):
    status, output = texts("\n".join(HYPOTHESES) + "\n", "\n".join(REFERENCES))
    scores = json.loads(output.read_text(encoding="utf-8"))
    assert status == 0 and scores["sentences"] == 2
    assert scores["bleu"] == pytest.approx(bleu(HYPOTHESES, REFERENCES))
    assert 0 < scores["chrf"] < 100 and "tok:13a" in scores["signature"]
    printed = capsys.readouterr().out
    assert scores["signature"] in printed and scores["chrf_signature"] in printed


def test_a_byte_order_mark_is_not_text(texts):
    status, output = texts("\ufeffone two three four\n", "one two three four\n")
    assert status == 0 and json.loads(output.read_text())["bleu"] == pytest.approx(100)


def test_a_reference_that_can_be_read_only_once_is_refused(tmp_path):
    (tmp_path / "hyp").write_text("a\n")
    command = "transformer-plugin score --hypotheses hyp --reference <(echo a) --output x.json"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment(forks=False),
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2 and "is not a file: write the references to one" in done.stderr
    assert not (tmp_path / "x.json").exists()


def test_an_empty_translation_is_a_line(texts):
    status, output = texts("one two three four five\n\n", "one two three four five\nsix\n")
    assert status == 0 and json.loads(output.read_text())["sentences"] == 2


@pytest.mark.parametrize(
    "hypotheses, references, message",
    [
        ("a\nb\n", "a\n", "hyp has 2, "),
        ("", "", "ref is empty"),
        ("a\n▁the ▁cat\n", "a\nthe cat\n", "hyp:2: subwords in"),
        ("a\nca@@ t\n", "a\ncat\n", "hyp:2: subwords in"),
        ("a\ncat\n", "a\n▁cat\n", "ref:2: subwords in"),
    ],
)
def test_texts_that_do_not_compare_are_refused(texts, capsys, hypotheses, references, message):
    status, output = texts(hypotheses, references)
    assert status == 2 and message in capsys.readouterr().err
    assert not output.exists()


def test_translations_of_another_set_are_refused(tmp_path, capsys):
    for name in ("hyp", "ref"):
        (tmp_path / name).write_text("one line of text here\n")
    (tmp_path / "generate.log").write_text("Generate valid with beam=4: BLEU4 = 1\n")
    files = [("--hypotheses", "hyp"), ("--reference", "ref"), ("--output", "score.json")]
    words = [word for option, name in files for word in (option, str(tmp_path / name))]
    assert main(["score", *words, "--set", "test"]) == 2
    said = capsys.readouterr().err
    assert "hyp has translations of the valid set, not of test: score with EVALUATE=valid" in said
    assert said.count("\n") == 1 and not (tmp_path / "score.json").exists()
    assert main(["score", *words, "--set", "valid"]) == 0
    assert json.loads((tmp_path / "score.json").read_text())["set"] == "valid"


def test_only_line_feeds_end_a_line(texts):
    """As for wc -l; other ends of lines are white space, and a Windows line end goes."""
    odd = "one\rtwo\x0bthree\x0cfour\x1cfive\x85six\u2028seven\n"
    plain = "one two three four five six seven\na b c d e\n\n"
    status, output = texts(odd + "a b c d e\r\n\n", plain)
    scores = json.loads(output.read_text())
    assert status == 0 and scores["sentences"] == odd.count("\n") + 2 == 3
    assert scores["bleu"] == pytest.approx(100) and scores["chrf"] == pytest.approx(100)


def test_single_marks_of_subwords_are_text(texts, capsys):
    plain = "the cat sat on the mat today\n" * 3
    status, output = texts(plain + "ca@@ t\n" * 2, plain + "the mark ▁ is text\nca@@ t\n")
    assert status == 0 and json.loads(output.read_text())["sentences"] == 5
    said = capsys.readouterr().err
    assert "hyp:4: '@@ ' or '▁', subword marks, in 2 of 5 lines ('ca@@ t')" in said
    assert "ref:4: " in said


def test_empty_lines_are_neither_text_nor_subwords(texts, capsys):
    status, output = texts("ca@@ t\nthe dog\n\n\n", "the cat\nthe dog\na\nb\n")
    assert status == 2 and not output.exists()
    assert "hyp:1: subwords in 1 of 4 lines ('ca@@ t'): join them first" in capsys.readouterr().err


def test_a_line_that_is_not_utf8_is_named(texts, tmp_path, capsys):
    (tmp_path / "hyp").write_bytes(b"a\nb\xff\n")
    status, output = texts(None, "a\nb\n")
    assert status == 2 and "hyp:2: not UTF-8 at byte 2" in capsys.readouterr().err
    assert not output.exists()


def test_translations_are_not_overwritten_by_their_score(tmp_path, capsys):
    hypotheses = tmp_path / "hyp"
    hypotheses.write_text("the cat\n")
    words = ["--hypotheses", hypotheses, "--reference", hypotheses, "--output", hypotheses]
    assert main(["score", *map(str, words)]) == 2
    assert "would be read and overwritten" in capsys.readouterr().err
    assert hypotheses.read_text() == "the cat\n"


def test_an_address_is_no_subword(texts):
    assert texts("me@@home is a name\n", "me@@home is a name\n")[0] == 0


@pytest.mark.parametrize("name", ["file", "sha256"])
def test_scores_without_the_reference_are_refused(tmp_path, name):
    reference = {"file": "ref", "sha256": "0"}
    scores = {"signature": "x", "bleu": 1.0, "reference": reference}
    (tmp_path / "score.json").write_text(json.dumps(scores))
    assert read_scores(tmp_path) == scores
    reference.pop(name)
    (tmp_path / "score.json").write_text(json.dumps(scores))
    with pytest.raises(ValueError, match=r"score\.json: not what transformer-plugin score writes"):
        read_scores(tmp_path)


def test_intl_is_sacrebleus_tokenisation(tmp_path):
    """It separates signs that 13a leaves in a word."""
    hypotheses, references = ["er zahlt 5€ im „Haus“ am See"], ["er zahlt 5 € im „ Haus “ am See"]
    for name, lines in (("hyp", hypotheses), ("ref", references)):
        (tmp_path / name).write_text(lines[0] + "\n", encoding="utf-8")
    words = ["--hypotheses", tmp_path / "hyp", "--reference", tmp_path / "ref", "--all"]
    assert main(["score", *map(str, [*words, "--output", tmp_path / "score.json"])]) == 0
    found = json.loads((tmp_path / "score.json").read_text())["variants"]["intl"]
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="intl").score
    assert found["score"] == pytest.approx(expected) and "tok:intl" in found["signature"]


def test_a_source_without_comet_is_refused(tmp_path, capsys):
    (tmp_path / "text").write_text("a b c d\n")
    words = [f"--{name}={tmp_path / 'text'}" for name in ("hypotheses", "reference", "source")]
    assert main(["score", *words, f"--output={tmp_path / 'score.json'}"]) == 2
    assert "--source is for COMET: give --comet-python too" in capsys.readouterr().err
