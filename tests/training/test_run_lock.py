"""Two runs never train into one folder."""

import os
import subprocess
import sys

import pytest
from fairseq_commands import REPO

from transformer_plugin.training.run_lock import hold_lock

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
