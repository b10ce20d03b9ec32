"""Which checkpoints of a folder are averaged."""

import math
from argparse import Namespace

import pytest
import torch

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.averaging import average
from transformer_plugin.checkpoints.last_checkpoints import last_checkpoints


def write(folder, name, updates=0, old_header=False, **settings):
    header = {"args": Namespace(**settings)} if old_header else {"cfg": {"checkpoint": settings}}
    history = [{"num_updates": updates}]
    torch.save({**header, "model": {}, "optimizer_history": history}, folder / name)


def names(*arguments, **options):
    return [path.name for path in last_checkpoints(*arguments, **options)]


def test_last_by_updates(tmp_path):
    for epoch, updates in ((1, 600), (1, 1200), (2, 1800), (12, 2400)):
        write(tmp_path, f"checkpoint_{epoch}_{updates}.pt", updates)
    assert names(tmp_path, 2, "updates") == ["checkpoint_2_1800.pt", "checkpoint_12_2400.pt"]
    with pytest.raises(CheckpointError, match="there are 4 checkpoints by updates, not 5"):
        last_checkpoints(tmp_path, 5, "updates")


@pytest.mark.parametrize("by", ["updates", "epochs"])
def test_a_training_that_ended_before_its_first_interval(tmp_path, by):
    write(tmp_path, "checkpoint_last.pt", 368, save_interval_updates=1000)
    write(tmp_path, "checkpoint_best.pt", 322, save_interval_updates=1000)
    assert names(tmp_path, 5, by, allow_fewer=True) == ["checkpoint_last.pt"]
    with pytest.raises(CheckpointError, match=f"there are 0 checkpoints by {by}, not 5"):
        last_checkpoints(tmp_path, 5, by)


@pytest.mark.parametrize("old_header", [False, True])
def test_intervals_that_end_with_an_epoch(tmp_path, old_header):
    """What stock fairseq leaves of an interval of 5 updates, in epochs of 10."""
    for updates in (5, 15, 25):
        name = f"checkpoint_{updates // 10 + 1}_{updates}.pt"
        write(tmp_path, name, updates, old_header, save_interval_updates=5)
    for epoch in (1, 2, 3):
        write(tmp_path, f"checkpoint{epoch}.pt", 10 * epoch, old_header, save_interval_updates=5)
    last = ["checkpoint2.pt", "checkpoint_3_25.pt", "checkpoint3.pt"]
    assert names(tmp_path, 3, "updates") == last


def test_the_newest_is_told_by_its_updates_and_not_by_its_name(tmp_path):
    write(tmp_path, "checkpoint_2_1800.pt", 600)  # renamed
    write(tmp_path, "checkpoint_1_0.pt", 1200)
    write(tmp_path, "checkpoint_9_1800.pt", 1800)
    write(tmp_path, "checkpoint_10_1800.pt", 1800)  # made again, of smaller epochs
    for epoch, updates in ((9, 9_000), (10, 10_000), (11, 11_000), (50, 500)):  # 50: another run's
        write(tmp_path, f"checkpoint{epoch}.pt", updates)
    last = ["checkpoint_2_1800.pt", "checkpoint_1_0.pt", "checkpoint_10_1800.pt"]
    assert names(tmp_path, 3, "updates") == last
    assert names(tmp_path, 2, "epochs") == ["checkpoint10.pt", "checkpoint11.pt"]


def test_old_checkpoints_have_no_history(tmp_path):
    for epoch in (2, 10, 9):
        torch.save({"model": {}}, tmp_path / f"checkpoint{epoch}.pt")
        torch.save({"model": {}}, tmp_path / f"checkpoint_{epoch}_{100 * epoch}.pt")
    assert names(tmp_path, 2, "epochs") == ["checkpoint9.pt", "checkpoint10.pt"]
    assert names(tmp_path, 2, "updates") == ["checkpoint_9_900.pt", "checkpoint_10_1000.pt"]


def test_old_checkpoints_of_one_epoch_are_several(tmp_path):
    for updates in (500, 1000, 1500):
        torch.save({"model": {}}, tmp_path / f"checkpoint_1_{updates}.pt")
    assert names(tmp_path, 2, "updates") == ["checkpoint_1_1000.pt", "checkpoint_1_1500.pt"]


@pytest.mark.parametrize("updates, is_said", [(2000, False), (2001, True)])
def test_it_is_said_if_the_run_has_gone_on(tmp_path, caplog, updates, is_said):
    for number in (1000, 2000):
        write(tmp_path, f"checkpoint_1_{number}.pt", number, save_interval_updates=1000)
    write(tmp_path, "checkpoint_last.pt", updates, save_interval_updates=1000)
    assert names(tmp_path, 2, "updates") == ["checkpoint_1_1000.pt", "checkpoint_1_2000.pt"]
    assert ("the run has gone on to update 2001" in caplog.text) == is_said == bool(caplog.text)


def test_broken_weights_are_found_when_they_are_averaged(tmp_path):
    for epoch in (1, 2):
        state = {"model": {"w": torch.tensor([math.nan if epoch == 2 else 0.0])}}
        torch.save(state, tmp_path / f"checkpoint{epoch}.pt")
    assert names(tmp_path, 1, "epochs") == ["checkpoint2.pt"]
    with pytest.raises(CheckpointError, match="hold inf or nan"):
        average(last_checkpoints(tmp_path, 2, "epochs"))


def test_a_gap_is_named(tmp_path):
    for updates in (5, 15, 25):
        name = f"checkpoint_{updates // 10 + 1}_{updates}.pt"
        write(tmp_path, name, updates, save_interval_updates=5)
    write(tmp_path, "checkpoint_last.pt", 30, save_interval_updates=5)
    missing = r"checkpoint of updates 20 is missing \(--save-interval-updates 5\); .* --last 2,"
    with pytest.raises(CheckpointError, match=missing):
        last_checkpoints(tmp_path, 3, "updates")
    assert names(tmp_path, 2, "updates") == ["checkpoint_3_25.pt", "checkpoint_last.pt"]


def test_a_gap_between_epochs_is_named(tmp_path):
    for epoch in (2, 4, 8):
        write(tmp_path, f"checkpoint{epoch}.pt", save_interval=2)
    with pytest.raises(CheckpointError, match=r"between checkpoint4\.pt and .*8\.pt .* 6 is"):
        last_checkpoints(tmp_path, 2, "epochs")


def test_folders_without_checkpoints_are_named(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(CheckpointError, match=r"those of this run are in .*/checkpoints"):
        last_checkpoints(tmp_path, 5, "epochs")
    with pytest.raises(CheckpointError, match="nowhere: no such folder"):
        last_checkpoints(tmp_path / "nowhere", 5, "epochs")


def test_fewer(tmp_path, caplog):
    with pytest.raises(CheckpointError, match="there are 0 checkpoints"):
        last_checkpoints(tmp_path, 5, "epochs", allow_fewer=True)
    write(tmp_path, "checkpoint1.pt")
    write(tmp_path, "checkpoint2.pt")
    found = names(tmp_path, 5, "epochs", allow_fewer=True)
    assert found == ["checkpoint1.pt", "checkpoint2.pt"]
    assert "there are 2 checkpoints by epochs, not 5: averaging what there is" in caplog.text


def test_checkpoints_of_a_kind_that_is_no_longer_saved_are_refused(tmp_path):
    """SAVE_UPDATES was set, or forgotten, between two trainings and averaging."""
    by_epochs = {"save_interval_updates": 0, "no_epoch_checkpoints": False}
    by_updates = {"save_interval_updates": 10, "no_epoch_checkpoints": True}
    for epoch in (1, 2):
        write(tmp_path, f"checkpoint{epoch}.pt", 20 * epoch, **by_epochs)
    write(tmp_path, "checkpoint_last.pt", 40, **by_epochs)
    assert names(tmp_path, 2, "epochs") == ["checkpoint1.pt", "checkpoint2.pt"]
    for updates in (50, 60):
        write(tmp_path, f"checkpoint_3_{updates}.pt", updates, **by_updates)
    write(tmp_path, "checkpoint_last.pt", 60, **by_updates)
    stale = (
        r"no longer saves checkpoints by epochs: checkpoint2\.pt is of update 40, checkpoint_last"
    )
    with pytest.raises(
        CheckpointError, match=f"{stale}.* of 60; .*: --by updates, or SAVE_UPDATES"
    ):
        last_checkpoints(tmp_path, 2, "epochs", allow_fewer=True)
    assert names(tmp_path, 2, "updates") == ["checkpoint_3_50.pt", "checkpoint_3_60.pt"]
    write(tmp_path, "checkpoint4.pt", 80, **by_epochs)
    write(tmp_path, "checkpoint_last.pt", 80, **by_epochs)
    with pytest.raises(CheckpointError, match=r"by updates: .* --by epochs, or SAVE_UPDATES"):
        last_checkpoints(tmp_path, 2, "updates", allow_fewer=True)


@pytest.mark.parametrize(
    ("by", "other", "kept"),
    [("updates", "epochs", "checkpoint2.pt"), ("epochs", "updates", "checkpoint_2_50.pt")],
)
def test_a_kind_that_was_never_saved_is_refused(tmp_path, by, other, kept):
    settings = {
        "save_interval_updates": 50 * (by == "epochs"),
        "no_epoch_checkpoints": by == "epochs",
    }
    write(tmp_path, "checkpoint_last.pt", 60, **settings)
    assert names(tmp_path, 5, by, allow_fewer=True) == ["checkpoint_last.pt"]  # all that there is
    write(tmp_path, kept, 50, **settings)
    with pytest.raises(CheckpointError, match=f"saves no checkpoints by {by}; .*--by {other}, or"):
        last_checkpoints(tmp_path, 5, by, allow_fewer=True)


def test_a_run_that_saves_both_kinds_may_average_either(tmp_path, caplog):
    """It was stopped within an epoch."""
    both = {"save_interval_updates": 15, "save_interval": 1}
    write(tmp_path, "checkpoint1.pt", 20, **both)
    write(tmp_path, "checkpoint_2_30.pt", 30, **both)
    write(tmp_path, "checkpoint_last.pt", 33, **both)
    assert names(tmp_path, 1, "epochs") == ["checkpoint1.pt"]
    assert "up to checkpoint1.pt, of update 20: the run has gone on to update 33" in caplog.text


def test_a_run_that_was_resumed_has_the_updates_of_its_last_entry(tmp_path):
    """fairseq adds an entry to the history whenever training resumes."""
    for name, updates, before in (("checkpoint_1_10.pt", 10, []), ("checkpoint_2_20.pt", 20, [10]),
                                  ("checkpoint_9_15.pt", 30, [10, 20])):  # fmt: skip
        history = [{"num_updates": n} for n in (*before, updates)]
        state = {"model": {"count": torch.tensor(updates)}, "optimizer_history": history}
        torch.save(state, tmp_path / name)
    found = last_checkpoints(tmp_path, 2, "updates")
    assert [path.name for path in found] == ["checkpoint_2_20.pt", "checkpoint_9_15.pt"]
    assert average(found[::-1])["model"]["count"] == 30


def test_the_interval_is_the_one_that_the_run_has_now(tmp_path):
    """It went on with half the interval, and its last one ended with an epoch."""
    for updates in (100, 200):
        write(tmp_path, f"checkpoint_1_{updates}.pt", updates, save_interval_updates=100)
    write(tmp_path, "checkpoint_last.pt", 250, save_interval_updates=50)
    assert names(tmp_path, 2, "updates") == ["checkpoint_1_200.pt", "checkpoint_last.pt"]


def test_a_folder_of_that_name_below_is_nothing_to_read(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    write(tmp_path, "checkpoint1.pt", 10)
    assert names(tmp_path, 1, "epochs") == ["checkpoint1.pt"]


def test_each_gap_is_found(tmp_path):
    for updates in (5, 10, 20):
        write(tmp_path, f"checkpoint_1_{updates}.pt", updates, save_interval_updates=5)
    with pytest.raises(CheckpointError, match=r"updates 15 is missing .*; average --last 1,"):
        last_checkpoints(tmp_path, 3, "updates")


def test_the_remedy_for_too_few_epochs(tmp_path):
    write(tmp_path, "checkpoint1.pt", 10)
    with pytest.raises(CheckpointError, match=r"not 2 .*; average fewer, or keep more with"):
        last_checkpoints(tmp_path, 2, "epochs")


def test_epochs_that_end_with_the_last_update_are_the_last(tmp_path):
    for epoch in (1, 2):
        write(tmp_path, f"checkpoint{epoch}.pt", 20 * epoch, no_epoch_checkpoints=True)
    write(tmp_path, "checkpoint_last.pt", 40, no_epoch_checkpoints=True)
    assert names(tmp_path, 2, "epochs") == ["checkpoint1.pt", "checkpoint2.pt"]
