"""What a report says of the files of a run."""

import pytest

from transformer_plugin.reports.training_report.run import _copies
from transformer_plugin.reports.training_report.series import Saved, TrainingLog


@pytest.mark.parametrize("largest, best", [(True, 30), (False, 10)])
def test_the_best_checkpoint_is_by_the_runs_metric_and_the_later_of_equals(largest, best):
    scores = {10: 2.0, 20: 3.0, 30: 3.0, 40: None}
    saved = [Saved(f"checkpoint_1_{n}.pt", 1, n, score) for n, score in scores.items()]
    settings = {"checkpoint": {"maximize_best_checkpoint_metric": largest}}
    copies = _copies(TrainingLog(saved=saved, settings=settings))
    assert {name: copy.updates for name, copy in copies.items()} == {
        "checkpoint_last.pt": 40,
        "checkpoint_best.pt": best,
    }
