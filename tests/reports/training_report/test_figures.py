"""The figures hold the series, each under its name."""

from datetime import datetime
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from transformer_plugin.reports.training_report.figures import CHARTS, _bars, _plot, draw
from transformer_plugin.reports.training_report.page import render
from transformer_plugin.reports.training_report.run import Run
from transformer_plugin.reports.training_report.series import TrainingLog

NUMBERS = {"loss": 1, "ppl": 2, "lr": 0.1, "gnorm": 3, "wps": 4, "tflops": 5, "mfu": 40,
           "loss_scale": 128}  # fmt: skip


def run(name, **names):
    log = TrainingLog(Path("x.log"))
    for update in (10, 20):
        for number, value in names.items():
            log.train[number].add(update, value * update)
    log.phases.seconds |= {"training": 7200.0, "saving": 3600.0}
    return Run(name, log)


@pytest.fixture
def whole():
    run_ = run("whole", **NUMBERS)
    table = run_.log.valid.setdefault("valid", type(run_.log.train)(run_.log.train.default_factory))
    for name in ("loss", "ppl", "bleu"):
        table[name].add(20, 9.0)
    return run_


def test_every_chart_where_the_log_has_all(whole):
    drawn, absent = draw([whole])
    assert [figure.name for figure in drawn] == [*(chart.name for chart in CHARTS), "phases"]
    assert absent == []
    assert all(figure.svg.startswith("<svg") and "currentColor" in figure.svg for figure in drawn)


def test_what_no_run_has_is_left_out_with_a_reason():
    drawn, absent = draw([run("a", loss=1), run("b", loss=1, mfu=2)])
    assert [figure.name for figure in drawn] == ["loss", "mfu", "phases"]
    assert "fp16 scale: no run is in fp16" in absent
    assert "BLEU on valid: trained without --eval-bleu" in absent


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_lines_are_the_series(whole, chart):
    axes = Figure().subplots()
    _plot(axes, chart, [whole, run("other", loss=7)])
    found = {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.lines}
    expected = {}
    if chart.train:
        value = NUMBERS[chart.train]
        expected["whole, train"] = [(10, 10 * value), (20, 20 * value)]
    if chart.valid:
        expected["whole, valid"] = [(20, 9.0)]
    if chart.name == "loss":
        expected["other, train"] = [(10, 70), (20, 140)]
    assert found == expected


def test_bars_are_the_phases_one_after_the_other(whole):
    axes = Figure().subplots()
    _bars(axes, [whole])
    spans = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    # start, training, validation, saving, between epochs, in hours
    assert spans == [(0, 0), (0, 2), (2, 0), (2, 1), (3, 0)]
    assert axes.get_xlabel() == "hours"


def test_names_that_are_markup_stay_text():
    runs = [run("<script>alert(1)</script>", loss=1), run("$a_{$", loss=1)]
    drawn, absent = draw(runs)
    page = render(runs, drawn, absent, None, datetime(2026, 3, 2))
    assert "<script" not in page and "&lt;script&gt;" in page and "$a_{$" in page
