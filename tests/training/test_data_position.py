"""Where an epoch goes on if the number of processes or of batches has changed."""

import pytest
from fairseq import checkpoint_utils
from trainers import build_trainer

from transformer_plugin.training.data_position import DataPosition


@pytest.mark.parametrize("processes, batches, expected", [
    (2, 12, 4),  # as before
    (1, 12, 8),  # 8 of the 12 batches were read
    (4, 12, 2),
    (3, 12, 2),  # two batches are read again
    (2, 24, 8),
    (3, 24, 5),
])  # fmt: skip
def test_the_share_of_the_epoch_stays(processes, batches, expected):
    saved = DataPosition(2)
    saved.begin(12)
    position = DataPosition(processes)
    position.restored = restored = {"iterations_in_epoch": 4, **saved.state()}
    position.begin(batches)
    assert restored["iterations_in_epoch"] == expected
    position.begin(batches)  # the next epoch begins at its start
    assert restored["iterations_in_epoch"] == expected and not position.restored


@pytest.mark.parametrize("grouped, processes", [(False, 3), (True, 2), (True, 3)])
def test_an_order_that_depends_on_the_number_of_processes_is_logged(caplog, grouped, processes):
    """And the place at which the epoch resumes, a multiple of the number of processes."""
    caplog.set_level("INFO")
    position = DataPosition(processes, grouped)
    position.restored = {"iterations_in_epoch": 5, "processes": 2, "batches": 12}
    position.begin(24)
    place = 18 if processes == 3 else 20
    assert f"resumes after batch {place} of 24, for {processes} processes" in caplog.text
    assert ("--grouped-shuffling" in caplog.text) == (grouped and processes == 3)


@pytest.mark.parametrize("known", [{}, {"processes": 2, "batches": 0}])
def test_without_the_number_of_batches_fairseqs_place_stays(known):
    position = DataPosition(1)
    position.restored = restored = {"iterations_in_epoch": 4, **known}
    position.begin(12)
    assert restored["iterations_in_epoch"] == 4


def test_fine_tuning_begins_at_the_start_whatever_the_place_of_the_base(tmp_path, caplog):
    caplog.set_level("INFO")
    old, _ = build_trainer(tmp_path / "old")
    old.consolidate_optimizer()
    old._position.batches = 1000
    base = str(tmp_path / "base.pt")
    old.save_checkpoint(base, {"train_iterator": {"epoch": 1, "iterations_in_epoch": 400}})
    for flag, resumes in (("--restore-file", True), ("--finetune-from-model", False)):
        caplog.clear()
        new, _ = build_trainer(tmp_path / flag, flag, base, data=old.cfg.task.data)
        checkpoint_utils.load_checkpoint(new.cfg.checkpoint, new)
        assert ("the epoch resumes after batch" in caplog.text) == resumes
