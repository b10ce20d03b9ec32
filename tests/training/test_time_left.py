"""The time left in the log of training."""

import pytest

from transformer_plugin.training.time_left import TimeLeft


@pytest.mark.parametrize(
    "max_update, max_epoch, total",
    [(1000, 0, 1000), (0, 8, 400), (1000, 8, 400), (300, 8, 300)],
)
def test_hours_at_the_speed_so_far(max_update, max_epoch, total):
    seconds = iter([100.0, 100.0 + 36, 100.0 + 2 * 36])
    left = TimeLeft(max_update, max_epoch, lambda: next(seconds))
    left.updates_per_epoch = 50
    # gone on with after update 200; 10 updates take 36 s, so 1,000 an hour
    assert left.hours(201) is None
    assert left.hours(211) == pytest.approx((total - 211) / 1000)
    assert left.hours(221) == pytest.approx((total - 221) / 1000)


def test_no_limit_and_a_limit_that_is_passed():
    assert TimeLeft(0, 0).hours(1) is None and TimeLeft(0, 0).hours(2) is None
    left = TimeLeft(10, 0)
    left.hours(10)
    assert left.hours(11) == 0
