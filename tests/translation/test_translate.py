"""Raw text in, raw text out: one line for each line, and the same as fairseq-generate gives."""

import argparse
import random
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from transformer_plugin import cli
from transformer_plugin.analysis.hypotheses import detokenise, read_hypotheses
from transformer_plugin.translation.translator import add_model_arguments, load_translator

REPO = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ODD = ["the cat sees", "", "  \t ", "漢字 ☃ \U0001f600 \u202e", "a\u2028b\x85c\fd\rcat",
       "</s> <s> <pad> <unk> | & @@ ▁", "\x00\x07", "cat " * 1200, "x" * 3000, "the cat sees"]


def command(run, *more):
    checkpoint = str(run / "checkpoints/averaged.pt")
    return ["translate", str(run / "data-bin"), "--path", checkpoint, "--cpu", *more]


def translator(run, *more):
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    return load_translator(parser.parse_args(command(run, *more)[1:]))


def test_the_test_set_is_translated_as_by_fairseq_generate(run_folder, tmp_path):
    moses = "moses" in run_folder.parent.name
    generate = [str(BIN / "fairseq-generate"), str(run_folder / "data-bin"), "--cpu"]
    generate += ["--user-dir", str(REPO / "transformer_plugin"), "--task", "vaswani_translation"]
    generate += ["--path", str(run_folder / "checkpoints/averaged.pt")]
    generate += ["--remove-bpe", "subword_nmt" if moses else "sentencepiece"]
    log = subprocess.run(generate, capture_output=True, check=True).stdout
    (tmp_path / "log").write_bytes(log)
    expected = read_hypotheses(tmp_path / "log")
    expected = detokenise(expected, "de") if moses else expected
    assert len(set(expected)) > 10  # of a model that has learnt something

    text, output = run_folder / "raw/test.en", tmp_path / "translations"
    assert cli.main(command(run_folder, "--input", str(text), "--output", str(output))) == 0
    assert output.read_text(encoding="utf-8").splitlines() == expected


def test_every_line_has_a_line(run_folder, recipe):
    text = "\ufeff" + "\n".join(ODD)  # no line feed at the end
    done = recipe("translate.sh", "toy", "--cpu", "--beam", "2", RUNS=run_folder.parent, input=text)
    lines = done.stdout.decode().split("\n")
    assert len(lines) == len(ODD) + 1 and lines[-1] == ""
    assert lines[1] == lines[2] == "" and lines[0] == lines[-2] != ""
    assert done.stderr == b""


def test_a_long_line_is_cut_behind_sentences_or_words(run_folder):
    loaded = translator(run_folder, "--part-length", "12", "--beam", "1")
    chance = random.Random(2)
    words = [chance.choice(["cat", "the", "slowly", "sees .", "zzzzzzzzzzzzzzzzzzzzzzz"])
             for _ in range(60)]
    (found,) = loaded.translate([" ".join(words)])
    pieces = [part.source for part in found.parts]
    assert [*chain(*pieces)] == loaded.subwords.split(" ".join(words))
    assert len(pieces) > 5 and max(map(len, pieces)) <= 12
    texts = [loaded.subwords.join(part.target) for part in found.parts]
    assert found.text == " ".join(texts)
    ends = [part[-1].endswith(".") for part in pieces[:-1] if any("." in p for p in part)]
    assert ends and all(ends)


def test_sentences_do_not_depend_on_their_neighbours(run_folder):
    loaded = translator(run_folder)
    together = [t.text for t in loaded.translate(ODD)]
    alone = [loaded.translate([line])[0].text for line in ODD]
    assert together == alone
    (part,) = loaded.translate(["the cat sees"])[0].parts
    assert part.source_tokens.numel() == len(part.source) + 1
    assert part.target_tokens.numel() == len(part.target) + 1 and part.score < 0


def test_output_is_written_whole_or_not_at_all(run_folder, tmp_path, capsys):
    text, output = tmp_path / "text", tmp_path / "out"
    words = command(run_folder, "--input", str(text), "--output", str(output))
    text.write_bytes(b"the cat\n\xff\n")
    assert cli.main(words) == 2
    assert f"{text}, line 2: not valid UTF-8 at byte 1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [text]
    text.write_bytes(b"the cat\r\n\r\n")
    assert cli.main(words) == 0
    first, second = output.read_text(encoding="utf-8").splitlines()
    assert first and not second and "\r" not in first


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--path", "/nowhere/x.pt"], "/nowhere/x.pt: no such checkpoint; train and average"),
        (["--input", "/nowhere/text"], "/nowhere/text"),
        (["--subwords", "/nowhere"], "holds neither joint.model nor joint.codes"),
        (["--part-length", "0"], "--part-length is at least 1"),
        (["-s", "fr", "-t", "de"], "dict.fr.txt: no such dictionary"),
    ],
)
def test_what_is_missing_is_named(prepared, capsys, flags, message):
    assert cli.main(command(prepared("sentencepiece"), *flags)) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "experiment, message", [("nothing", "known: "), ("toy", "no such checkpoint; train")]
)
def test_an_experiment_that_is_not_there_is_named(recipe, tmp_path, experiment, message):
    done = recipe("translate.sh", experiment, status=2, RUNS=tmp_path)
    assert message in done.stderr.decode()
