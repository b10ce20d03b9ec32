"""The summary shows what the files of a run hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from transformer_plugin.cli import main
from transformer_plugin.reports.summary import summary

INNER = (
    "2026-01-01 00:00:00 | INFO | train_inner | epoch 001:    1 / 9 loss=9, wps={}, ups=1,"
    " wpb={}, num_updates={}\n"
)


@pytest.fixture
def finished_run(tmp_path):
    """A folder with the files of a run of six sentences."""
    for folder in ("raw", "data-bin"):
        (tmp_path / folder).mkdir()
    for name, word in (("raw/test.en", "in"), ("raw/test.de", "ref"), ("hypotheses.txt", "out")):
        (tmp_path / name).write_text("".join(f"{word} {i}\n" for i in range(6)))
    for language in ("en", "de"):
        (tmp_path / f"data-bin/test.en-de.{language}.idx").touch()
    (tmp_path / "score.json").write_text(json.dumps({"bleu": 87.654, "chrf": 9, "signature": "S"}))
    (tmp_path / "train.log").write_text(
        # 3,000 tokens in 30 s, twice 3,000 in 1 s: 9,000 in 32 s, far from the median
        INNER.format(100, 3000, 1) + INNER.format(3000, "3000.0", 2) + INNER.format(3000, 3000, 3)
        + "2026-01-01 00:00:00 | INFO | train | epoch 001 | wps 999999 | num_updates 3\n"
    )  # fmt: skip
    return tmp_path


def test_it_shows_sentences_scores_speed_and_place(finished_run, capsys):
    assert main(["summary", str(finished_run)]) == 0
    printed = capsys.readouterr().out
    for i in (0, 2, 4):
        for line in (f"source       in {i}", f"reference    ref {i}", f"translation  out {i}"):
            assert line in printed
    assert "out 1" not in printed
    assert "BLEU 87.65  S\n" in printed and "3 updates at 281 target tokens a second" in printed
    assert str(finished_run) in printed


@pytest.mark.parametrize("place", ["raw/valid", "clean/valid.raw"])  # the latter is held out
def test_it_shows_the_set_that_was_translated(finished_run, capsys, place):
    for language in ("en", "de"):
        (finished_run / "clean").mkdir(exist_ok=True)
        (finished_run / f"{place}.{language}").write_text("".join(f"v {i}\n" for i in range(6)))
        (finished_run / f"data-bin/valid.en-de.{language}.idx").touch()
    (finished_run / "generate.log").write_text("Generate valid with beam=4: BLEU4 = 1\n")
    assert main(["summary", str(finished_run)]) == 0
    printed = capsys.readouterr().out
    assert "source       v 0\n" in printed and "translations of the valid set" in printed


@pytest.mark.parametrize("arch, explained", [("vaswani_tiny", True), ("lstm_luong", False)])
def test_it_suggests_commands_that_the_model_has(finished_run, arch, explained):
    log = finished_run / "train.log"
    settings = "2026-01-01 00:00:00 | INFO | fairseq_cli.train | {'_name': None,"
    settings += f" 'model': {{'_name': '{arch}'}}}}\n"
    log.write_text(settings + log.read_text())
    shown = summary(finished_run, finished_run, experiment="toy")
    assert f"transformer-plugin report {finished_run}" in shown
    assert (f"transformer-plugin attention --data {finished_run}" in shown) == explained


def test_an_experiment_whose_name_has_a_space_can_be_pasted(finished_run, monkeypatch):
    run = finished_run / "runs/my toy"
    run.parent.mkdir()
    shutil.copytree(finished_run, run, ignore=shutil.ignore_patterns("runs"))
    (finished_run / "recipes").mkdir()  # as in the root of the repository
    monkeypatch.chdir(finished_run)
    shown = summary(run, run, experiment="my toy").splitlines()
    assert "  echo 'in 0' | recipes/translate.sh 'my toy'" in shown


def test_commands_can_be_pasted_in_another_folder(finished_run, monkeypatch):
    """Recipes are called from anywhere; paths relative to that folder and to the repository were
    mixed."""
    monkeypatch.chdir(finished_run.parent)
    shown = summary(Path(finished_run.name), Path(finished_run.name), experiment="toy")
    steps = shown.partition("next:\n")[2].splitlines()
    repository = Path(__file__).resolve().parents[2]
    assert steps[0] == f"  cd {repository}" and (repository / "recipes/translate.sh").exists()
    assert f"DATA_DIR={finished_run} CHECKPOINT={finished_run}/checkpoints" in steps[1]


def test_a_log_without_progress_is_refused(finished_run, capsys):
    (finished_run / "train.log").write_text("nothing\n")
    assert main(["summary", str(finished_run)]) == 2
    assert "train.log: no settings or progress" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", '{"bleu": 87', "[1]", '{"bleu": 1}', '{"bleu": "1"}'])
def test_a_damaged_score_is_named(finished_run, capsys, text):
    (finished_run / "score.json").write_text(text)
    assert main(["summary", str(finished_run)]) == 2
    assert "score.json: not what transformer-plugin score writes" in capsys.readouterr().err
    assert main(["report", str(finished_run)]) == 0
    assert "score.json: not what transformer-plugin score writes" in capsys.readouterr().out


def test_translations_of_another_number_are_named(finished_run, capsys):
    (finished_run / "hypotheses.txt").write_text("out\n" * 5)
    assert main(["summary", str(finished_run)]) == 2
    error = capsys.readouterr().err
    assert "test.de has 6, " in error
    assert "hypotheses.txt has 5 lines: translate the set again" in error


def test_references_that_changed_after_scoring_are_refused(finished_run, capsys):
    """A new test set with as many lines, for old translations; the old one may be elsewhere."""
    raw = finished_run / "raw"
    old, new = raw / "test.de", "".join(f"new {i}\n" for i in range(6))
    (finished_run / "score.json").unlink()
    words = ["--hypotheses", finished_run / "hypotheses.txt", "--reference", old]
    assert main(["score", *map(str, words), "--output", str(finished_run / "score.json")]) == 0
    capsys.readouterr()
    assert main(["report", str(finished_run)]) == 0
    assert "no sentences" not in capsys.readouterr().out  # though the log has no settings
    before = old.read_text()
    old.write_text(new)
    message = f"{old}: the references are missing or have changed since the run was scored"
    assert main(["summary", str(finished_run)]) == 2
    assert message in capsys.readouterr().err
    assert main(["report", str(finished_run)]) == 0
    assert f"no sentences: {message}" in capsys.readouterr().out
    moved = finished_run / "moved"
    raw.rename(moved)
    (moved / "test.de").write_text(before)
    assert main(["summary", str(finished_run)]) == 2
    capsys.readouterr()
    moved.rename(raw)
    assert main(["summary", str(finished_run)]) == 0
    assert "reference    ref 0\n" in capsys.readouterr().out


def test_an_unfinished_run_is_named(finished_run, capsys):
    (finished_run / "score.json").unlink()
    assert main(["summary", str(finished_run)]) == 2
    missing = f"no score yet: {finished_run / 'score.json'} is missing (recipes/score.sh writes it)"
    assert missing in capsys.readouterr().err


@pytest.mark.parametrize("source, target", [("en", "zh-CN"), ("pt-BR", "pt")])
def test_languages_may_have_hyphens(finished_run, capsys, source, target):
    for old, new in (("en", source), ("de", target)):
        (finished_run / f"data-bin/test.en-de.{old}.idx").unlink()
        (finished_run / f"data-bin/test.{source}-{target}.{new}.idx").touch()
        (finished_run / f"raw/test.{old}").rename(finished_run / f"raw/test.{new}")
    assert main(["summary", str(finished_run)]) == 0
    assert "source       in 0\nreference    ref 0\n" in capsys.readouterr().out


def test_a_run_on_data_of_another_folder_names_both(finished_run, tmp_path_factory):
    """As runs of SEEDS and SYSTEM do."""
    run = tmp_path_factory.mktemp("seed1")
    for name in ("hypotheses.txt", "score.json", "train.log"):
        (finished_run / name).rename(run / name)
    printed = summary(run, finished_run, 3, "toy", with_scores=False)
    model = f"--data {finished_run} --path {run}/checkpoints/averaged.pt"
    assert f"transformer-plugin attention {model} --output {run}/attention.html" in printed
