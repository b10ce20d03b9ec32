"""A run that went back to an earlier checkpoint, or that began anew."""

import pytest

from transformer_plugin.reports.training_report.series import read_log

LINES = (
    "train_inner | epoch 001:   400 / 900 loss=9, wps=100, num_updates=2900",
    "valid | epoch 001 | valid on 'valid' subset | loss 4 | num_updates 3000",
    "train | epoch 001 | loss 5 | num_updates 5000",
    "valid | epoch 001 | valid on 'valid' subset | loss 3 | num_updates 5000",
    "fairseq.trainer | Loaded checkpoint runs/x/checkpoint_1_3000.pt (epoch 1 @ 3000 updates)",
    "train_inner | epoch 001:   401 / 900 loss=8, wps=100, num_updates=3010",
)


def test_what_it_left_behind_is_gone(tmp_path):
    """Else "best loss on valid" would be of a model that is no longer there."""
    path = tmp_path / "train.log"
    stamp = "2026-01-01 00:00:0{} | INFO | {}\n"
    path.write_text("".join(stamp.format(i, line) for i, line in enumerate(LINES)))
    log = read_log(path)
    assert log.updates == 3010 and log.train["loss"].updates == [2900, 3010]
    assert log.valid["valid"]["loss"].updates == [3000] and not log.epochs["loss"].updates


@pytest.mark.parametrize(
    ("text", "updates", "kept"),
    [
        ("Loaded checkpoint x/checkpoint_1_3000.pt (epoch 1 @ 3000 updates)", 3000, [3000]),
        ("No existing checkpoint found x/checkpoint_last.pt", 0, []),
    ],
)
def test_it_forgets_the_checkpoints_and_results_after_its_start(tmp_path, text, updates, kept):
    path = tmp_path / "train.log"
    saved = "fairseq.checkpoint_utils | Saved checkpoint x/{0}.pt (epoch 1 @ {0} updates, score 4)"
    lines = (*LINES[:2], saved.format(3000), *LINES[2:4], saved.format(5000))
    lines += ("fairseq_cli.train | {'_name': None}", f"fairseq.trainer | {text}")
    path.write_text("".join(f"2026-01-01 00:00:00 | INFO | {line}\n" for line in lines))
    log = read_log(path)
    assert log.updates == updates and [each.updates for each in log.saved] == kept
    assert log.valid["valid"]["loss"].updates == kept and not log.epochs["loss"].updates
