"""chrF of the validation set, as training logs it."""

from types import SimpleNamespace

import pytest
import torch
from sacrebleu.metrics import CHRF
from trainers import build_trainer

from transformer_plugin.validation_scores import ValidationScores


@pytest.mark.parametrize(
    "found, expected, score",
    [
        ([3, 3], [3, 3], 0.0),  # unknown words never match
        ([3, 5], [3, 5], CHRF(eps_smoothing=False).sentence_score("xb", ["yb"]).score),
        ([4, 5], [4, 5], 100.0),
    ],
)
def test_unknown_words_match_nothing_and_weigh_one_character(found, expected, score):
    words = {3: None, 4: "a", 5: "b"}
    task = ValidationScores.__new__(ValidationScores)
    task.tgt_dict = SimpleNamespace(
        pad=lambda: 1,
        string=lambda ids, _bpe, unk_string: " ".join(words[i] or unk_string for i in ids.tolist()),
    )
    task.tokenizer = None
    task.cfg = SimpleNamespace(
        eval_bleu_remove_bpe=None, eval_bleu_print_samples=False, eval_tokenized_bleu=False
    )
    task.inference_step = lambda *_, **__: [[{"tokens": torch.tensor(found)}]]
    task._inference_with_bleu(None, {"target": torch.tensor([expected])}, None)
    counts = list(task._chrf_of_batch.values())
    assert CHRF()._compute_score_from_stats(counts).score == pytest.approx(score)


def test_the_model_that_is_trained_is_scored_and_not_its_teacher(tmp_path):
    """Which a criterion loads with ``load_model_ensemble``."""
    trainer, _ = build_trainer(tmp_path, "--eval-bleu")
    task = trainer.task
    task.build_model(trainer.cfg.model, from_checkpoint=True)
    assert task.sequence_generator.models[0] is trainer.get_model()
    later = task.build_model(trainer.cfg.model)
    assert task.sequence_generator.models[0] is later
