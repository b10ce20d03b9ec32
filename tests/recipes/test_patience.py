"""Training that stops when chrF on valid gets no better."""

from __future__ import annotations

import json
import re

import pytest
from experiments import recipe


@pytest.mark.slow
def test_nothing_is_learnt(small_data, tmp_path):
    """With a learning rate of 0, the second of five epochs is not better, and the last."""
    search = json.dumps({"beam": 1, "max_len_a": 0, "max_len_b": 5})
    knobs = {"RUNS": tmp_path, "DATA_DIR": small_data, "MAX_TOKENS": 2000, "MAX_EPOCH": 5}
    knobs |= {"LR_FACTOR": 0, "EVAL_BLEU": 1, "PATIENCE": 1, "PATIENCE_ON": "chrf"}
    done = recipe("train", "--d-model", 64, "--d-ff", 128, "--eval-bleu-args", search, **knobs)
    log = (tmp_path / "toy/train.log").read_text()
    assert "early stop since valid performance hasn't improved for last 1 runs" in log
    scores = re.findall(r"\| valid \| .*\| chrf ([\d.]+) \|", log)
    assert len(scores) == 2 and float(scores[0]) == float(scores[1]) > 0
    assert re.findall(r"\| best_chrf ([\d.]+)", log) == scores[1:]
    assert f"updates, score {scores[0]})" in log
    assert f", chrF {float(scores[0]):.2f} (best chrf), " in done.stdout
    manifest = json.loads((tmp_path / "toy/manifest.json").read_text())
    assert manifest["stages"]["train"][-1]["valid"]["chrf"] == float(scores[0])
