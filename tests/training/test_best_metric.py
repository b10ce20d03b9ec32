"""A --best-checkpoint-metric that cannot choose the best checkpoint is refused in a line, and what
was trained is saved."""

import pytest
import torch
from fairseq_commands import last_line, run, training

EVAL_BLEU = ("--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 3}')
FEW = ("--max-update", 2, "--train-subset", "valid", "--best-checkpoint-metric")


def train(toy, folder, *flags, status=0):
    command = training(toy / "data-bin", folder, *FEW, *flags)
    command.remove("--disable-validation")
    return run(*command, status=status)


@pytest.mark.parametrize("flags, said", [
    (["bleu"], "--best-checkpoint-metric bleu needs --eval-bleu"),
    (["chrf", *EVAL_BLEU], "the lowest chrf: give --maximize-best-checkpoint-metric too"),
])  # fmt: skip
def test_scores_are_refused_after_the_first_update(toy, tmp_path, flags, said):
    done = train(toy, tmp_path, *flags, status=1)
    assert said in last_line(done) and "Traceback" not in done.stderr
    assert "begin validation" not in done.stderr + done.stdout


def test_after_a_validation_without_it_the_run_is_saved(toy, tmp_path):
    done = train(toy, tmp_path, "perplexity", status=1)
    assert "--best-checkpoint-metric perplexity: validation logs no such" in last_line(done)
    assert "Traceback" not in done.stderr
    saved = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert saved["optimizer_history"][-1]["num_updates"] == 2
    done = train(toy, tmp_path, "ppl", "--max-update", 3)
    assert "@ 2 updates)" in done.stderr + done.stdout
    assert (tmp_path / "checkpoint_best.pt").exists()
