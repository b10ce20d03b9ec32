"""A --best-checkpoint-metric that cannot choose the best checkpoint is refused in a line, and what
was trained is saved."""

from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig
from fairseq_commands import last_line, run, training

from transformer_plugin.training import best_metric
from transformer_plugin.training.best_metric import refusing_wrong_metrics

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


def settings(metric, validates=True, **task):
    chosen = {"best_checkpoint_metric": metric, "maximize_best_checkpoint_metric": True}
    return SimpleNamespace(
        checkpoint=CheckpointConfig(**chosen),
        dataset=SimpleNamespace(disable_validation=not validates),
        task=SimpleNamespace(**task),
    )


def test_what_is_not_refused():
    """Nothing is chosen without validation; a user's own task may log BLEU without the option."""
    step = refusing_wrong_metrics(lambda *_: "done")
    cfg = settings("bleu", validates=False, eval_bleu=False)
    assert step(cfg, None, None, None) == step(settings("bleu"), None, None, None) == "done"


def test_a_key_that_the_users_code_lacks_is_not_the_metric():
    def validate(*_):
        raise KeyError("other")

    with pytest.raises(KeyError, match="other"):
        refusing_wrong_metrics(validate)(settings("loss"), None, None, None)


def test_all_processes_wait_for_the_first_one_to_save(monkeypatch):
    events = []
    monkeypatch.setattr(checkpoint_utils, "save_checkpoint", lambda *_: events.append("saved"))
    monkeypatch.setattr(best_metric, "wait_for_all", lambda device: events.append("waited"))

    def validate(*_):
        raise KeyError("ppl2")

    with pytest.raises(SystemExit):
        refusing_wrong_metrics(validate)(
            settings("ppl2"), SimpleNamespace(device="cpu"), None, None
        )
    assert events == ["saved", "waited"]
