"""Reports of runs that are not one whole run: several, running, broken, diverged, or none."""

import json
import math
import re
import shutil

import pytest
from report_reading import Tables, points

from transformer_plugin.cli import main
from transformer_plugin.reports.training_report.run import read_run


def test_a_running_and_broken_run_beside_the_whole_one(watched, log, tmp_path, capsys):
    running = tmp_path / "running"
    (running / "checkpoints").mkdir(parents=True)
    lines = log.splitlines(keepends=True)
    inner = [i for i, line in enumerate(lines) if "| train_inner |" in line]
    lines[inner[2]] = lines[inner[2]][:-20]
    cut = inner[-3]
    # the settings of the start are lost, so those of the checkpoint are taken
    kept = [line for line in lines[:cut] if "{'_name'" not in line]
    (running / "train.log").write_text("".join(kept) + lines[cut][:70])
    shutil.copy(
        watched.folder / "checkpoints/checkpoint_last.pt",
        running / "checkpoints/checkpoint_last.pt",
    )
    output = tmp_path / "both.html"
    assert main(["report", str(running), str(watched.folder), "--output", str(output)]) == 0
    text, rows = output.read_text(), Tables(output.read_text()).rows
    of_log = points("".join(lines[: inner[2]] + lines[inner[2] + 1 : cut]), "train_inner", "loss")
    table = read_run(running, "running").log.train["loss"]
    assert list(zip(table.updates, table.values, strict=True)) == of_log
    score = json.loads((watched.folder / "score.json").read_text())
    assert rows["BLEU"] == ["–", f"{score['bleu']:.2f}"]
    assert "a comparison of scores: " in text
    assert "not ended: " in text and re.search(r"left at this speed", text)
    printed = capsys.readouterr().out
    assert "unreadable lines in the log: 2" in printed
    assert f"no score yet: {running / 'score.json'}" in printed
    assert "no settings" not in printed and "encoder_layers 2 (paper: 6)" in text


@pytest.mark.slow
def test_scores_of_several_runs_are_compared(watched, tmp_path):
    """Two systems of two seeds, whose folders alone are named."""
    for system, dropped in (("long", 0), ("short", 3)):
        for seed in (1, 2):
            run = tmp_path / system / f"seed{seed}"
            run.mkdir(parents=True)
            for name in ("score.json", "train.log"):
                shutil.copy(watched.folder / name, run / name)
            lines = (watched.folder / "raw/test.de").read_text().splitlines()
            lines = [" ".join(line.split()[dropped * (i % seed == 0) :])
                     for i, line in enumerate(lines)]  # fmt: skip
            (run / "hypotheses.txt").write_text("".join(f"{line}\n" for line in lines))
    systems, output = [tmp_path / "long", tmp_path / "short"], tmp_path / "both.html"
    assert main(["report", *map(str, systems), "--output", str(output)]) == 0
    found = Tables(output.read_text())
    assert found.rows["target tokens a second"][3:] and not found.rows["signature"][4:]
    expected = tmp_path / "comparison.json"
    words = [*map(str, systems), "--test", "bootstrap", "--output", str(expected)]
    assert main(["compare", *words]) == 0
    comparison = json.loads(expected.read_text())
    ours = comparison["systems"][1]["bleu"]
    p_value = comparison["tests"]["bootstrap"]["systems"][1]["bleu"]["p_value"]
    score, interval, p = found.rows["short"]
    assert score == f"{ours['mean']:.2f} ± {ours['deviation']:.2f}" and p_value < 0.05
    assert interval.startswith("95 %: ") and p == f"p = {p_value:.4f} (bootstrap)"
    assert "BLEU of 30 sentences, mean and standard deviation of 2 seeds" in " ".join(found.text)
    assert "Paired bootstrap" in output.read_text()
    unscored = tmp_path / "unscored"
    unscored.mkdir()
    shutil.copy(watched.folder / "train.log", unscored / "train.log")
    assert main(["report", *map(str, [unscored, *systems]), "--output", str(output)]) == 0
    assert Tables(output.read_text()).rows["short"] == [score, interval, p]
    absent = f"a comparison of scores: not of {unscored}: no {unscored / 'score.json'}"
    assert absent in " ".join(output.read_text().split())
    assert main(["report", str(systems[1]), "--output", str(output)]) == 0
    assert Tables(output.read_text()).rows["short"] == [score]
    for claim in ("Paired bootstrap", ">significance<", ">interval<"):
        assert claim not in output.read_text()


def test_a_log_alone_and_wrong_runs(watched, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(watched.folder / "train.log")]) == 0
    assert (tmp_path / "report.html").exists()
    (tmp_path / "empty").mkdir()
    for wrong, message in (
        (tmp_path / "empty", f"no training log: expected {tmp_path / 'empty/train.log'}"),
        (tmp_path / "nowhere", "no such folder"),
        (watched.folder / "hypotheses.txt", "no settings or progress of fairseq-train"),
    ):
        assert main(["report", str(wrong), "--output", str(tmp_path / "wrong.html")]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "wrong.html").exists()
    assert main(["report", str(watched.folder), "--output", "report.pdf"]) == 2
    assert "ending in .html" in capsys.readouterr().err
    (tmp_path / "folder.html").mkdir()
    assert main(["report", str(watched.folder), "--output", str(tmp_path / "folder.html")]) == 2
    assert "folder.html is a folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.glob("folder*")] == ["folder.html"]


def test_numbers_that_are_none_are_left_out(watched, log, tmp_path):
    """A run that diverged has no best, and no figure of an earlier report."""
    (tmp_path / "report_figures").mkdir()
    for name in ("perplexity", "mine"):
        (tmp_path / f"report_figures/{name}.png").touch()
    (tmp_path / "train.log").write_text(re.sub(r"\b(loss|ppl)([= ])[\d.]+", r"\1\2nan", log))
    assert main(["report", str(tmp_path)]) == 0
    rows = Tables((tmp_path / "report.html").read_text()).rows
    figures = {path.stem for path in (tmp_path / "report_figures").iterdir()}
    assert {"mine", "speed", "phases"} < figures and "perplexity" not in figures
    assert "Perplexity: the log has no finite value" in (tmp_path / "report.html").read_text()
    assert "best loss on valid" not in rows and "best perplexity on valid" not in rows
    assert math.isnan(read_run(tmp_path, "x").log.train["loss"].values[0])
