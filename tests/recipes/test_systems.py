"""fairseq's own systems in the recipes: trained, continued, averaged, decoded and scored."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from recipe_environment import REPO, environment

from transformer_plugin.reports.training_report.results import results
from transformer_plugin.reports.training_report.run import read_run

SMALL = {
    "fairseq": ["--encoder-layers", "2", "--decoder-layers", "2", "--encoder-embed-dim", "32",
                "--decoder-embed-dim", "32", "--encoder-ffn-embed-dim", "64",
                "--decoder-ffn-embed-dim", "64"],
    "convs2s": ["--encoder-layers", "[(32, 3)] * 2", "--decoder-layers", "[(32, 3)] * 2",
                "--encoder-embed-dim", "32", "--decoder-embed-dim", "32",
                "--decoder-out-embed-dim", "32"],
    "lstm": ["--encoder-embed-dim", "32", "--decoder-embed-dim", "32", "--encoder-hidden-size",
             "32", "--decoder-hidden-size", "32", "--decoder-out-embed-dim", "32"],
}  # fmt: skip


def recipe(verb, *words, **knobs):
    done = subprocess.run([REPO / f"recipes/{verb}.sh", "toy", *words], env=environment(**knobs),
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("system", ["convs2s", "fairseq", "lstm"])
def test_a_system_runs_from_training_to_its_score(system, precision, small_data, tmp_path):
    """Two epochs in two starts; weight norm's parameters are saved and read back."""
    knobs = {"RUNS": str(tmp_path), "DATA_DIR": str(small_data), "SYSTEM": system,
             "PRECISION": precision, "AVERAGE": "2", "MAX_TOKENS": "2000"}  # fmt: skip
    recipe("train", *SMALL[system], **knobs, MAX_EPOCH="1")
    again = recipe("train", *SMALL[system], **knobs, MAX_EPOCH="2")
    assert re.search(r"[\d,]+ parameters\n  continues from checkpoint_last.pt, ", again.stdout)
    run = tmp_path / "toy" / system
    for verb in ("average", "generate", "score"):
        recipe(verb, **knobs)
    scores = json.loads((run / "score.json").read_text())
    assert scores["sentences"] == 40
    assert len((run / "hypotheses.txt").read_text().splitlines()) == 40
    stages = json.loads((run / "manifest.json").read_text())["stages"]
    trained = stages["train"][-1]
    assert trained["epochs"] == 2 and stages["score"][-1]["scores"] == scores
    assert trained["flops"] == trained["updates"] * trained["flops_per_update"] > 0
    assert dict(results([read_run(run, system)]))["training FLOPs"] == [f"{trained['flops']:.3g}"]
