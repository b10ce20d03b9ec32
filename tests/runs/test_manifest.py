"""manifest.json: no entry is lost, whatever happens."""

import errno
import json
import os
import subprocess

import numpy as np
import pytest
import torch
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from transformer_plugin.reports.training_report.series import read_log
from transformer_plugin.runs import machine, manifest
from transformer_plugin.runs.data_files import data_facts
from transformer_plugin.runs.training_facts import training_facts

AT = "2026-01-31 12:00:00"
LOG = f"""\
{AT} | INFO | transformer_plugin.task | not as in the paper: d_model 128 (paper: 512); lr 1.5 (x)
{AT} | INFO | fairseq_cli.train | training on 2 devices (GPUs/TPUs)
{AT} | INFO | x | an update holds 27,750 source and 24,000 target tokens on average (paper: about \
25,000 each) and takes 2.5e+12 FLOPs; 1,110 updates an epoch
{AT} | INFO | train_inner | epoch 001:     50 / 1110 loss=9.1, wps=10, num_updates=50, lr=0.1
{AT} | INFO | valid | epoch 001 | valid on 'valid' subset | loss 7.5 | nll_loss 6.5 | ppl 90.5 | \
wps 0 | num_updates 50 | best_loss 7.5
{AT} | INFO | train_inner | epoch 001:    100 / 1110 loss=8.1, num_updates=100, lr=0.1
"""
RESUMED = f"""\
{AT} | INFO | fairseq.trainer | Loaded checkpoint /runs/checkpoint_last.pt (epoch 1 @ 60 updates)
{AT} | WARNING | x | an update holds 27,750 source and 12,000 target tokens on average (paper: \
about 25,000 each) and takes 1.0e+12 FLOPs; 2,220 updates an epoch. That is 0.48 times the paper's
{AT} | INFO | train_inner | epoch 002:     90 / 2220 loss=9.1, wps=10, num_updates=150, lr=0.1
{AT} | INFO | valid | epoch 002 | valid on 'valid' subset | loss 7.9 | nll_loss 6.9 | ppl 99.5 | \
wps 0 | num_updates 150 | best_loss 7.5
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(LOG)
    return path


def test_a_training_log_is_read(log):
    found = training_facts(log)
    assert found["deviations"] == ["d_model 128 (paper: 512)", "lr 1.5 (x)"]
    assert (found["devices"], found["updates"], found["epochs"]) == (2, 100, 1)
    assert found["flops"] == 100 * 2.5e12
    assert found["tokens_per_update"] == {
        "intended": 25_000,
        "source": 27_750,
        "source_off_percent": 11.0,
        "target": 24_000,
        "target_off_percent": -4.0,
    }
    assert found["valid"]["ppl"] == 90.5


def test_updates_that_were_lost_were_spent(log):
    log.write_text(LOG + RESUMED)
    found = training_facts(log)
    assert (found["starts"], found["updates"], found["updates_an_epoch"]) == (2, 150, 2220)
    assert found["flops"] == 100 * 2.5e12 + 90 * 1e12
    assert (found["valid"]["loss"], found["best_valid"]["loss"]) == (7.9, 7.5)


def test_without_progress_the_checkpoints_have_the_updates(log):
    """As with --log-format none."""
    saved = "Saved checkpoint b/c.pt (epoch 2 @ 1200 updates, score 3) (writing took 1.9 seconds)"
    silent = "".join(line for line in LOG.splitlines(keepends=True) if "| epoch 001" not in line)
    log.write_text(f"{silent}{AT} | INFO | fairseq.checkpoint_utils | {saved}\n")
    found = training_facts(log)
    assert (found["updates"], found["epochs"], found["flops"]) == (1200, 2, 1200 * 2.5e12)
    assert read_log(log).updates == 1200


@pytest.mark.parametrize("spoilt", ["loss nan | ", "loss inf | ", ""])
def test_the_best_validation_has_a_finite_loss(log, spoilt):
    log.write_text(LOG.replace("loss 7.5 | nll", f"{spoilt}nll") + RESUMED)
    assert training_facts(log)["best_valid"]["loss"] == 7.9


def entries(run, stage):
    return json.loads((run / "manifest.json").read_text())["stages"][stage]


def test_entries_are_added_and_the_same_is_not_said_twice(log, tmp_path):
    manifest.add(tmp_path, tmp_path, "train", ["fairseq-train --a"])
    first = entries(tmp_path, "train")
    manifest.add(tmp_path, tmp_path, "train", ["fairseq-train --a"])
    assert entries(tmp_path, "train") == first and len(first) == 1
    manifest.add(tmp_path, tmp_path, "train", ["fairseq-train --b"], status=85)
    manifest.add(tmp_path, tmp_path, "average", ["average"])
    found = entries(tmp_path, "train")
    assert found[:1] == first
    assert [entry["commands"] for entry in found] == [["fairseq-train --a"], ["fairseq-train --b"]]
    assert [entry["status"] for entry in found] == [0, 85]
    assert found[0]["code"].keys() == {"commit", "changed"} and found[0]["versions"]["torch"]
    assert found[0]["hardware"]["cores"] > 0


def test_a_preparation_is_recorded_again_only_if_the_data_has_changed(tmp_path, monkeypatch):
    """Its steps were skipped, perhaps on another machine or after an update of the code."""
    (tmp_path / "raw").mkdir()
    for text, host in (("a", "one"), ("a", "two"), ("b", "three"), ("b", "four")):
        (tmp_path / "raw/train.en").write_text(text)
        monkeypatch.setattr(manifest, "hardware", lambda host=host: host)
        manifest.add(tmp_path, tmp_path, "prepare", [f"fetch.py --output /{host}/raw"])
    assert [entry["hardware"] for entry in entries(tmp_path, "prepare")] == ["one", "three"]


def test_the_commit_is_known_if_another_user_owns_the_code(monkeypatch):
    own = machine.code()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert machine.code() == own


def test_a_write_that_fails_leaves_the_former(log, tmp_path, monkeypatch):
    manifest.add(tmp_path, tmp_path, "train", ["one"])
    before = (tmp_path / "manifest.json").read_bytes()

    def full(_file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        manifest.add(tmp_path, tmp_path, "train", ["two"])
    assert (tmp_path / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("contents", ["{", "[]", '{"stages": {"train": 1}}', '{"stages": []}'])
def test_one_that_is_none_is_kept_aside(log, tmp_path, contents, capsys):
    (tmp_path / "manifest.json").write_text(contents)
    manifest.add(tmp_path, tmp_path, "train", ["one"])
    assert len(entries(tmp_path, "train")) == 1
    (aside,) = tmp_path.glob("manifest.json.broken-*")
    assert aside.read_text() == contents and str(aside) in capsys.readouterr().err


def test_data_of_other_tools_is_hashed_and_known_lines_are_not_counted_again(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/train.en").write_text("a\nb\n")
    (tmp_path / "raw/.train.en.swp").write_text("of an editor")
    found = data_facts(tmp_path, {})
    assert found["raw"]["files"].keys() == {"train.en"}
    assert found["raw"]["files"]["train.en"]["lines"] == 2 and found["raw"]["settings"] is None
    known = json.loads(json.dumps(found))
    known["raw"]["files"]["train.en"]["lines"] = 77
    assert data_facts(tmp_path, known)["raw"]["files"]["train.en"]["lines"] == 77
    (tmp_path / "raw/train.en").write_text("a\nb\nc\n")
    assert data_facts(tmp_path, known)["raw"]["files"]["train.en"]["lines"] == 3


def test_the_deviations_of_a_search_are_those_of_the_last_one(tmp_path):
    """Its log begins with messages of other programs, which may be in another encoding."""
    log = tmp_path / "generate.log.stderr"
    assert manifest.search_deviations(log) is None
    log.write_bytes(b"Caf\xe9\n")
    assert manifest.search_deviations(log) is None
    mark = "INFO:transformer_plugin.generator:search not as in the paper: "
    with log.open("a") as file:
        file.write(f"{mark}beam 5 (paper: 4); lenpen 1.0 (paper: 0.6)\n")
    assert manifest.search_deviations(log) == ["beam 5 (paper: 4)", "lenpen 1.0 (paper: 0.6)"]
    with log.open("a") as file:
        file.write(f"{mark}nothing\n")
    assert manifest.search_deviations(log) == []


def test_binarised_text_has_as_many_lines_as_sentences(tmp_path):
    """By fairseq's own writer; an index of another form has none."""
    folder = tmp_path / "data-bin"
    folder.mkdir()
    builder = MMapIndexedDatasetBuilder(str(folder / "train.bin"), dtype=np.uint16)
    for length in (3, 1, 4, 1, 5):
        builder.add_item(torch.arange(length))
    builder.finalize(str(folder / "train.idx"))
    (folder / "other.idx").write_bytes(b"TNTIDX\0\0" + bytes(32))
    files = data_facts(tmp_path, {})["data-bin"]["files"]
    assert {name: facts.get("lines") for name, facts in files.items()} == {
        **{"train.bin": None, "train.idx": 5, "other.idx": None}
    }


def test_only_changes_of_tracked_files_are_changes(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path,
                       check=True, capture_output=True)  # fmt: skip

    git("init")
    (tmp_path / "tracked").write_text("one")
    git("add", "tracked")
    git("commit", "-m", "first")
    monkeypatch.setattr(machine, "REPO", tmp_path)
    (tmp_path / "untracked").write_text("a log")
    assert machine.code()["changed"] is False and len(machine.code()["commit"]) == 40
    (tmp_path / "tracked").write_text("two")
    assert machine.code()["changed"] is True
