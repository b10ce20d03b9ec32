"""The time left in the log of training."""

from types import SimpleNamespace

import pytest

from transformer_plugin.training.time_left import TimeLeft


@pytest.mark.parametrize(
    "max_update, max_epoch, total",
    [(1000, 0, 1000), (0, 8, 400), (1000, 8, 400), (300, 8, 300)],
)
def test_hours_at_the_speed_so_far(max_update, max_epoch, total):
    seconds = iter([100.0, 100.0 + 36, 100.0 + 2 * 36])
    left = TimeLeft(max_update, max_epoch, lambda: next(seconds))
    left.batches_per_epoch = 50
    # gone on with after update 200; 10 updates take 36 s, so 1,000 an hour
    assert left.hours(201) is None
    assert left.hours(211) == pytest.approx((total - 211) / 1000)
    assert left.hours(221) == pytest.approx((total - 221) / 1000)


def test_each_epoch_has_its_own_update_freq():
    """The last one is that of all later epochs: 5 + 10 + 20 + 20 updates of 20 batches."""
    seconds = iter([0.0, 36.0])
    left = TimeLeft(0, 4, lambda: next(seconds), update_freq=(4, 2, 1))
    left.batches_per_epoch = 20
    left.hours(1)
    assert left.hours(11) == pytest.approx((55 - 11) / 1000)


def test_no_limit_and_a_limit_that_is_passed():
    assert TimeLeft(0, 0).hours(1) is None and TimeLeft(0, 0).hours(2) is None
    left = TimeLeft(10, 0)
    left.hours(10)
    assert left.hours(11) == 0


@pytest.mark.parametrize("max_update, trained, expected", [(0, 2.5, 1.5), (31, 2.5, 1), (0, 5, 0)])
def test_the_limit_of_time_is_that_of_the_whole_run(max_update, trained, expected):
    """--stop-time-hours 4; ten updates take an hour, so 20 more of them take two."""
    times = iter([0, 3600])
    left = TimeLeft(max_update, 0, lambda: next(times), max_hours=4)
    assert left.hours(11, (trained - 1) * 3600) is None
    assert left.hours(21, trained * 3600) == pytest.approx(expected)


def test_epochs_after_the_last_one_do_not_count():
    """--update-freq may name more epochs than there are."""
    times = iter([0, 360])
    left = TimeLeft(0, 2, lambda: next(times), update_freq=(1, 2, 4, 4))
    left.batches_per_epoch = 8
    assert left.hours(1) is None
    assert left.hours(2) == pytest.approx(10 * 0.1)  # 8 and 4 updates of 6 minutes


def test_the_limits_are_those_of_the_command():
    limits = SimpleNamespace(max_update=7, max_epoch=2, update_freq=[4, 2], stop_time_hours=3)
    expected = TimeLeft(7, 2, update_freq=[4, 2], max_hours=3)
    assert vars(TimeLeft.within(limits)) == vars(expected)


def test_the_last_update_of_an_epoch_may_be_of_fewer_batches():
    """20 batches, 3 an update: 7 updates an epoch."""
    times = iter([0, 3600])
    left = TimeLeft(0, 4, lambda: next(times), update_freq=(3,))
    left.batches_per_epoch = 20
    assert left.hours(1) is None
    assert left.hours(2) == pytest.approx(4 * 7 - 2)
