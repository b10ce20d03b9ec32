"""FLOPs of a run whose training was started several times."""

from datetime import datetime

from transformer_plugin.reports.training_report.attempts import Attempts
from transformer_plugin.reports.training_report.entries import Entry

SIZE = (
    "an update holds 30 source and 20 target tokens on average (paper: about 25,000 each) and takes"
    " 1e+09 FLOPs; 40 updates an epoch"
)


def test_updates_that_were_lost_count_and_a_run_made_anew_starts_at_0():
    attempts = Attempts()
    for texts, updates in (
        ([SIZE], [5, 12]),
        (["Loaded checkpoint a/checkpoint_last.pt (epoch 1 @ 10 updates)", SIZE], [14, 13]),
        ([SIZE], [3]),
    ):
        for text, update in [*((text, None) for text in texts), *(("", n) for n in updates)]:
            attempts.take(Entry(datetime(2026, 1, 1), "INFO", "train", text, True), update)
    assert [(each.first, each.last) for each in attempts.found] == [(0, 12), (10, 14), (0, 3)]
    assert attempts.flops == (12 + 4 + 3) * 1e9
