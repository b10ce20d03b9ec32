"""Raw text in, raw text out: one line for each line, and the same as fairseq-generate gives."""

import argparse
import os
import random
import signal
import subprocess
import sys
from itertools import chain

import pytest
from fairseq_commands import PLUGIN, environment, run

from transformer_plugin import cli
from transformer_plugin.checkpoints.safe_loading import load
from transformer_plugin.checkpoints.saving import save
from transformer_plugin.scoring.hypotheses import detokenise, read_hypotheses
from transformer_plugin.translation.arguments import add_model_arguments, add_search_arguments
from transformer_plugin.translation.loading import load_translator

ODD = [
    "the cat sees",
    "",
    "  \t ",
    "漢字 ☃ \U0001f600 \u202e",
    "a\u2028b\x85c\fd\rcat",
    "</s> <s> <pad> <unk> | & @@ ▁",
    "\x00\x07",
    "cat " * 1200,
    "x" * 3000,
    "the cat sees",
]


def command(run, *more):
    checkpoint = str(run / "checkpoints/averaged.pt")
    return ["translate", str(run / "data-bin"), "--path", checkpoint, "--cpu", *more]


def translator(run, *more):
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    add_search_arguments(parser)
    return load_translator(parser.parse_args(command(run, *more)[1:]))


def test_the_test_set_is_translated_as_by_fairseq_generate(run_folder, tmp_path):
    moses = "moses" in run_folder.parent.name
    checkpoint = run_folder / "checkpoints/averaged.pt"
    marks = "subword_nmt" if moses else "sentencepiece"
    log = run(
        *("fairseq-generate", run_folder / "data-bin", "--cpu", *PLUGIN, "--path", checkpoint),
        *("--remove-bpe", marks),
    ).stdout
    (tmp_path / "log").write_text(log, encoding="utf-8")
    expected = read_hypotheses(tmp_path / "log")
    expected = detokenise(expected, "de") if moses else expected
    assert len(set(expected)) > 10  # the model has learnt something

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
    words = [
        chance.choice(["cat", "the", "slowly", "sees .", "zzzzzzzzzzzzzzzzzzzzzzz"])
        for _ in range(60)
    ]
    (found,) = loaded.translate([" ".join(words)])
    pieces = [part.source for part in found.parts]
    assert [*chain(*pieces)] == loaded.subwords.split(" ".join(words))
    assert len(pieces) > 5 and max(map(len, pieces)) <= 12
    texts = [loaded.target_subwords.join(part.target) for part in found.parts]
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
    assert f"{text}:2: not UTF-8 at byte 1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [text]
    text.write_bytes(b"the cat\r\n\r\n")
    assert cli.main(words) == 0
    first, second = output.read_text(encoding="utf-8").splitlines()
    assert first and not second and "\r" not in first


@pytest.mark.parametrize("to_file", [False, True])
def test_ctrl_c_ends_it_quietly(prepared, tmp_path, to_file):
    words = ["transformer-plugin", *command(prepared("sentencepiece"), "--buffer", "1")]
    words += ["--output", str(tmp_path / "out")] if to_file else []
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, **pipes, env=environment(forks=to_file)) as running:
        running.stdin.write(b"the cat\n" * 3000)
        running.stdin.flush()
        while not (list(tmp_path.iterdir()) if to_file else running.stdout.readline()):
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (130, b"")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_pipe_stays_a_pipe_and_a_link_a_link(prepared, tmp_path):
    run, pipe, link = prepared("sentencepiece"), tmp_path / "pipe", tmp_path / "link"
    text = tmp_path / "text"
    text.write_text("the cat\n")
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "target")
    with os.fdopen(os.open(pipe, os.O_RDWR), "rb") as reading:
        assert cli.main(command(run, "--input", str(text), "--output", str(pipe))) == 0
        translation = reading.readline()
    assert pipe.is_fifo() and translation.strip()
    assert cli.main(command(run, "--input", str(text), "--output", str(link))) == 0
    assert link.is_symlink() and (tmp_path / "target").read_bytes() == translation
    link.unlink()
    link.symlink_to("/proc/self/fd/1")  # as /dev/stdout is; here a pipe
    words = ["transformer-plugin", *command(run, "--input", str(text), "--output", str(link))]
    done = subprocess.run(words, env=environment(forks=False), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, translation, b"")
    assert not list(tmp_path.glob("*.partial"))


def test_bytes_that_are_no_text_are_named(prepared, tmp_path, capsys):
    run = prepared("sentencepiece")
    words = ["attention", "--data", run / "data-bin", "--path", run / "checkpoints/averaged.pt"]
    words += ["--cpu", "--text", "the \udcff cat", "--output", tmp_path / "page.html"]
    assert cli.main([*map(str, words)]) == 2
    assert "--text 'the \\udcff cat' is not valid UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_closed_stream_is_named(prepared, monkeypatch, capsys, stream):
    monkeypatch.setattr(sys, stream, None)
    assert cli.main(command(prepared("sentencepiece"))) == 2
    assert f"standard {stream.removeprefix('std')}put is closed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--path", "/nowhere/x.pt"], "/nowhere/x.pt: no such checkpoint; train and average"),
        (["--input", "/nowhere/text"], "/nowhere/text"),
        (["--subwords", "/nowhere"], "holds neither joint.model nor joint.codes"),
        (["--part-length", "0"], "--part-length must be at least 1"),
        (["--beam", "0"], "--beam 0: expected at least 1"),
        (["--lenpen", "nan"], "--lenpen nan: expected a number from -8 to 8"),
        (["--buffer", "-1"], "--buffer must be at least 1"),
        (["--output", "/"], "/ is a folder: give a file with --output"),
        (["--output", "/nowhere/text", "--path", "/nowhere/x.pt"], "/nowhere: no such folder"),
        (["--lenpen", "50", "--path", "/nowhere/x.pt"], "--lenpen 50.0: expected a number from"),
        (["-s", "fr", "-t", "de"], "dict.fr.txt: no such dictionary"),
        (["-s", "de"], "-s de: give both languages, -s and -t, or neither"),
        (["-t", "de"], "-t de: give both languages"),
    ],
)
def test_what_is_missing_is_named(prepared, capsys, flags, message):
    assert cli.main(command(prepared("sentencepiece"), *flags)) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [["translate", "DATA"], ["serve", "DATA", "--port", "0"],
              ["attention", "--data", "DATA", "--text", "x", "--output", "FOLDER/page.html"]]
)  # fmt: skip
def test_languages_are_those_of_the_training(prepared, tmp_path, capsys, words):
    run = prepared("sentencepiece")
    places = {"DATA": run / "data-bin", "FOLDER/page.html": tmp_path / "page.html"}
    checkpoint = run / "checkpoints/averaged.pt"
    more = ["--path", checkpoint, "--cpu", "-s", "de", "-t", "en"]
    assert cli.main([str(places.get(word, word)) for word in [*words, *more]]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{checkpoint}: trained to translate en to de, not de to en" in line
    assert "give -s en -t de" in line and not list(tmp_path.iterdir())


def test_data_of_the_other_direction_is_refused_without_a_flag_too(prepared, tmp_path, capsys):
    run = prepared("sentencepiece")
    for path in (run / "data-bin").glob("*.*"):
        (tmp_path / path.name.replace(".en-de.", ".de-en.")).symlink_to(path)
    words = ["translate", tmp_path, "--subwords", run / "subwords", "--cpu", "--path"]
    assert cli.main([*map(str, words), str(run / "checkpoints/averaged.pt")]) == 2
    assert "trained to translate en to de, not de to en" in capsys.readouterr().err


@pytest.mark.parametrize("header", ["cfg", "args", "neither"])
def test_old_headers_name_languages_and_others_need_not(prepared, tmp_path, header, capsys):
    """The second of an ensemble, so that it is told which file is meant."""
    run, changed = prepared("sentencepiece"), tmp_path / "changed.pt"
    state = load(run / "checkpoints/averaged.pt")
    sections = state["cfg"]
    languages = {"source_lang": "de", "target_lang": "fr"} if header != "neither" else {}
    sections["task"] = {k: v for k, v in sections["task"].items() if "_lang" not in k} | languages
    if header == "args":
        # fairseq's older header: the options of all sections side by side.
        options = sections["model"] | sections["task"]
        options |= {"arch": sections["model"]["_name"], "task": "vaswani_translation"}
        state["args"] = argparse.Namespace(**options, optimizer=None, lr_scheduler="fixed")
        state["cfg"] = None
    save(state, changed)
    words = command(run, "--input", str(run / "raw/test.en"), "--beam", "1")
    words[words.index("--path") + 1] = f"{run / 'checkpoints/averaged.pt'}:{changed}"
    assert cli.main(words) == (0 if header == "neither" else 2)
    error = capsys.readouterr().err
    if header == "neither":
        assert error == ""
    else:
        assert f"{changed}: trained to translate de to fr, not en to de" in error


@pytest.mark.parametrize(
    "experiment, message", [("nothing", "known: "), ("toy", "no such checkpoint; train")]
)
def test_an_experiment_that_is_not_there_is_named(recipe, tmp_path, experiment, message):
    done = recipe("translate.sh", experiment, status=2, RUNS=tmp_path)
    assert message in done.stderr.decode()
