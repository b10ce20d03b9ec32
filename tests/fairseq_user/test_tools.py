"""fairseq's other commands, on a run of the plugin."""

import math

import pytest
from fairseq_commands import PLUGIN, generate, last_line, run


@pytest.mark.slow
def test_validation_and_scores(checkpoint, data, tmp_path):
    done = run(
        *("fairseq-validate", data, *PLUGIN, "--path", checkpoint, "--cpu"),
        *("--valid-subset", "valid", "--max-tokens", "500"),
    )
    line = next(x for x in (done.stdout + done.stderr).splitlines() if "nll_loss" in x)
    loss, perplexity = (
        float(line.split(f"| {name} ")[1].split(" ")[0]) for name in ("nll_loss", "ppl")
    )
    assert perplexity == pytest.approx(2**loss, rel=0.01) and 0 < loss < math.log2(80)

    log = generate(data, checkpoint).stdout
    (bleu,) = (x for x in log.splitlines() if x.startswith("Generate test with beam=4: BLEU4"))
    for mark, place, name in (("H-", 2, "hypotheses"), ("T-", 1, "references")):
        rows = [x.split("\t")[place] for x in log.splitlines() if x.startswith(mark)]
        (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    done = run("fairseq-score", "--sys", tmp_path / "hypotheses", "--ref", tmp_path / "references")
    assert last_line(done).split(",")[0] == bleu.split(": ")[1].split(",")[0]
