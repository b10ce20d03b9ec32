"""Whether there is anything left to train."""

from types import SimpleNamespace

import pytest

from transformer_plugin.training import early_stopping
from transformer_plugin.training.completed import reached_limit


@pytest.mark.parametrize("limits, said", [
    ({}, None),
    ({"max_update": 101}, None),
    ({"max_update": 100}, "--max-update 100 is reached"),
    ({"max_update": 99}, "--max-update 99 is reached"),
    ({"stop_time_hours": 1.5}, None),  # fairseq stops above it
    ({"stop_time_hours": 1.4}, "--stop-time-hours 1.4 is reached"),
    ({"patience": 4}, None),
    ({"patience": 3}, "--patience 3 has run out"),
])  # fmt: skip
def test_limits_of_a_run_of_100_updates_and_90_minutes(monkeypatch, limits, said):
    """Which had three validations without a better score; 0 and -1 are fairseq's "no limit"."""
    monkeypatch.setattr(early_stopping, "_counts", {"best": 2.0, "num_runs": 3})
    given = {"max_update": 0, "stop_time_hours": 0, "patience": -1} | limits
    patience = given.pop("patience")
    trainer = SimpleNamespace(
        cfg=SimpleNamespace(
            optimization=SimpleNamespace(**given), checkpoint=SimpleNamespace(patience=patience)
        ),
        get_num_updates=lambda: 100,
        _previous_training_time=90 * 60,
    )
    assert reached_limit(trainer) == said
