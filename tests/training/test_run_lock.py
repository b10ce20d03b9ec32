"""Two runs never train into one folder."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_commands import REPO
from trainers import build_trainer

from transformer_plugin.training.run_lock import hold_lock
from transformer_plugin.training.trainer import SafeTrainer

HOLDING = """
import sys, time, pathlib
from transformer_plugin.training.run_lock import hold_lock
hold_lock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
time.sleep(100)
"""


def test_two_runs_in_one_folder(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(SystemExit, match=f"process {holder.pid} on .* --save-dir"):
            hold_lock(tmp_path, patience=0)
    finally:
        holder.kill()
        holder.wait()
    hold_lock(tmp_path, patience=0)  # a killed run holds nothing


def test_a_run_locks_its_folder_and_clears_it_unless_it_saves_nothing(tmp_path):
    """A killed run leaves a file that it was writing."""
    trainer, _ = build_trainer(tmp_path)
    folder = tmp_path / "checkpoints"
    left, other = folder / ".checkpoint_last.pt.7.partial", folder / ".notes.7.partial"
    folder.mkdir(exist_ok=True)
    for path in (left, other):
        path.touch()
    cfg = copy.deepcopy(trainer.cfg)
    for no_save, files in ((True, {left, other}), (False, {folder / ".lock", other})):
        cfg.checkpoint.no_save = no_save
        SafeTrainer(cfg, trainer.task, trainer.model, trainer.criterion)
        assert set(folder.iterdir()) == files


def test_a_run_does_not_keep_itself_out(tmp_path, monkeypatch):
    hold_lock(tmp_path)
    monkeypatch.chdir(tmp_path)
    hold_lock(Path(), patience=0)
