"""What is read off a log: where the run ends, and its best point."""

import math

import pytest

from transformer_plugin.reports.training_report.series import Series, TrainingLog, best


@pytest.mark.parametrize("max_update, max_epoch, total", [
    (1000, 8, 400), (300, 8, 300), (0, 8, 400), (1000, 0, 1000), (0, 0, None)
])  # fmt: skip
def test_a_run_ends_at_the_first_of_its_limits(max_update, max_epoch, total):
    limits = {"max_update": max_update, "max_epoch": max_epoch}
    assert TrainingLog(settings={"optimization": limits}, batches=50).total_updates == total


@pytest.mark.parametrize("table", ["train", "epochs"])
def test_a_mean_rate_is_over_the_time_of_training(table):
    """A point of 100 s at 1 TFLOP/s and one of 1 s at 5; others have no speed."""
    log = TrainingLog()
    for update, tflops, wps in ((10, 1, 3), (20, 5, 300), (30, 5, 0), (40, 5, math.nan)):
        for name, value in (("loss", 1), ("tflops", tflops), ("wps", wps), ("wpb", 300)):
            getattr(log, table)[name].add(update, value)
    log.train["tflops"].add(50, 5.0)
    assert log.mean_rate("tflops") == pytest.approx((100 * 1 + 1 * 5) / 101)
    assert log.tokens_per_second() == pytest.approx(600 / 101)
    assert log.mean_rate("mfu") is None


@pytest.mark.parametrize("gap", [math.nan, math.inf, -math.inf])
def test_the_best_point_is_a_number(gap):
    series = Series([1, 2, 3, 4], [gap, 3.0, 2.0, gap])
    assert best(series, largest=True) == (2, 3.0) and best(series, largest=False) == (3, 2.0)
    assert best(Series([1], [gap]), largest=True) is None
