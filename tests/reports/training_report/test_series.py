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


@pytest.mark.parametrize("gap", [math.nan, math.inf, -math.inf])
def test_the_best_point_is_a_number(gap):
    series = Series([1, 2, 3, 4], [gap, 3.0, 2.0, gap])
    assert best(series, largest=True) == (2, 3.0) and best(series, largest=False) == (3, 2.0)
    assert best(Series([1], [gap]), largest=True) is None
