"""The figures hold the series, each under its name."""

import math
import re
from datetime import datetime
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from transformer_plugin.reports.training_report.figures import CHARTS, _bars, _lines, _plot, draw
from transformer_plugin.reports.training_report.page import render
from transformer_plugin.reports.training_report.pointer import pointer_values
from transformer_plugin.reports.training_report.results import results
from transformer_plugin.reports.training_report.run import Run
from transformer_plugin.reports.training_report.series import Series, TrainingLog

NUMBERS = {"loss": 1, "ppl": 6, "lr": 0.1, "gnorm": 3, "wps": 4, "tflops": 5, "epoch": 0.1,
           "loss_scale": 128}  # fmt: skip


def run(name, **names):
    log = TrainingLog()
    for update in (10, 20):
        for number, value in names.items():
            log.train[number].add(update, value * update)
    log.phases.seconds |= {"training": 7200.0, "saving": 3600.0}
    return Run(name, log, Path("x.log"))


@pytest.fixture
def whole():
    run_ = run("whole", **NUMBERS)
    table = run_.log.valid.setdefault("valid", type(run_.log.train)(run_.log.train.default_factory))
    for update, value, epoch in ((10, 8.0, 1), (20, 9.0, 2)):
        for name in ("loss", "ppl", "bleu"):
            table[name].add(update, value)
        table["epoch"].add(update, epoch)
    return run_


def test_every_chart_where_the_log_has_all(whole):
    drawn, absent = draw([whole])
    assert [figure.name for figure in drawn] == [*(chart.name for chart in CHARTS), "phases"]
    assert absent == []
    assert all(figure.svg.startswith("<svg") and "currentColor" in figure.svg for figure in drawn)


def test_what_no_run_has_is_left_out_with_a_reason():
    drawn, absent = draw([run("a", loss=1), run("b", loss=1, gnorm=2)])
    assert [figure.name for figure in drawn] == ["gradient_norm", "phases"]
    assert "fp16 scale: no run is in fp16" in absent
    assert "BLEU on valid: trained without --eval-bleu" in absent


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_lines_are_the_series(whole, chart):
    axes = Figure().subplots()
    _plot(chart, _lines(chart, [whole, run("other", loss=7, ppl=7)]), axes)
    found = {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.lines}
    best = [points for label, points in found.items() if label.startswith("_")]
    expected = {}
    if chart.train:
        value = NUMBERS[chart.train]
        expected["whole, train"] = [(10, 10 * value), (20, 20 * value)]
    if chart.valid:
        expected["whole, valid"] = [(10, 8.0), (20, 9.0)]
    if chart.name == "perplexity":
        expected["other, train"] = [(10, 70), (20, 140)]
    lines = {label: points for label, points in found.items() if not label.startswith("_")}
    assert lines == expected
    assert best == {"perplexity": [[(10, 8.0)]], "bleu": [[(20, 9.0)]]}.get(chart.name, [])
    assert (axes.get_ylim()[0] == 0) == chart.from_zero


def test_results_have_the_loss_and_speed_of_a_log_of_epochs_alone():
    short = Run("short", TrainingLog(), Path("x.log"))
    for name, value in (("loss", 4.5), ("wpb", 90), ("wps", 3000), ("tflops", 1.5)):
        short.log.epochs[name].add(10, value)
    draw([short])
    assert dict(results([short]))["last loss of training"] == ["4.5"]
    assert dict(results([short]))["target tokens a second"] == ["3,000"]
    assert dict(results([short]))["TFLOP/s, mean"] == ["1.5"]


def test_best_epochs_are_named(whole):
    best = {figure.name: figure.best for figure in draw([whole])[0]}
    assert best.pop("perplexity") == ["best of valid: 8 at update 10, epoch 1"]
    assert best.pop("bleu") == ["best of valid: 9 at update 20, epoch 2"]
    assert not any(best.values())


def test_the_pointer_finds_the_values_where_they_are_drawn(whole):
    """Each point lies in the SVG where the page's formula puts it."""
    figure = draw([whole])[0][0]
    pointer, (line, valid) = figure.pointer, figure.pointer["lines"]
    assert line["points"] == [[10, 60.0, 1.0, 10.0], [20, 120.0, 2.0, 20.0]] and pointer["log"]
    assert [point[2] for point in valid["points"]] == [1, 2] and pointer["also"] == "loss"
    width, height = (float(x) for x in re.search(r'viewBox="0 0 (\S+) (\S+)"', figure.svg).groups())
    (drawn,) = re.findall(
        rf'<path d="M (\S+) (\S+) \nL (\S+) (\S+) \n"[^>]*{line["colour"]}', figure.svg
    )[:1]
    left, bottom, right, top = pointer["box"]
    for x, y, (update, value, *_) in zip(drawn[::2], drawn[1::2], line["points"], strict=True):
        across = (update - pointer["x"][0]) / (pointer["x"][1] - pointer["x"][0])
        low, high = map(math.log, pointer["y"])
        up = (math.log(value) - low) / (high - low)
        assert float(x) / width == pytest.approx(left + across * (right - left), abs=1e-3)
        assert 1 - float(y) / height == pytest.approx(bottom + up * (top - bottom), abs=1e-3)


def test_the_x_axis_has_the_updates_of_a_run_that_diverged():
    diverged = run("diverged", loss=1, ppl=6, gnorm=math.nan)
    diverged.log.train["ppl"].add(100, math.nan)
    drawn, absent = draw([diverged])
    pointer = drawn[0].pointer
    assert pointer["lines"][0]["points"][-1][:2] == [100, None]
    assert pointer["x"] == pytest.approx((10 - 4.5, 100 + 4.5))  # matplotlib's margin: 5 %
    assert "Gradient norm: the log has no finite value" in absent
    assert [figure.name for figure in drawn] == ["perplexity", "phases"]


def test_a_long_line_has_no_more_points_than_a_chart_has_pixels():
    long = Series(list(range(5001)), [float("inf"), *map(float, range(1, 5001))])
    points = pointer_values("train", "#000000", long, {}, "loss")["points"]
    assert len(points) <= 1002 and points[0] == [0, None, None, None]
    assert points[-1] == [5000, 5000.0, None, None]


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
    assert "<script>alert" not in page and "&lt;script&gt;" in page and "$a_{$" in page
