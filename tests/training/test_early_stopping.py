"""The counts of ``--patience`` and the best score, when a run starts from a checkpoint."""

import pytest

from transformer_plugin.training import early_stopping


@pytest.fixture
def function(monkeypatch):
    """Has the counts as attributes, as fairseq's."""
    monkeypatch.setattr(early_stopping, "_counts", {})

    def should_stop_early():
        pass

    early_stopping.watch(should_stop_early)
    return should_stop_early


def saved():
    return {"best": 2.5, "early_stopping": {"best": 2.5, "num_runs": 3, "metric": "loss"}}


@pytest.mark.parametrize("metric, continues, kept, goes_on", [
    ("loss", True, True, True),
    ("loss", False, True, False),
    ("bleu", True, False, False),
    ("bleu", False, False, False),
])  # fmt: skip
def test_a_score_counts_for_its_metric_and_patience_for_its_run(
    function, metric, continues, kept, goes_on
):
    extra_state = saved()
    early_stopping.restore(extra_state, metric, continues)
    assert ("best" in extra_state) == kept
    assert vars(function) == ({"best": 2.5, "num_runs": 3} if goes_on else {})
    assert early_stopping.has_run_out(3) == goes_on
    assert not early_stopping.has_run_out(4) and not early_stopping.has_run_out(0)


def test_what_is_saved_is_what_is_restored(function):
    early_stopping.restore(saved(), "loss", True)
    assert early_stopping.counts("loss") == saved()["early_stopping"]
