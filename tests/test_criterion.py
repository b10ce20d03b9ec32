"""What the loss logs: bits a token, and the perplexity of Table 3."""

import math

import pytest
import torch
from fairseq.logging import metrics

from transformer_plugin.criterion import VaswaniCrossEntropy


def test_perplexity_is_that_of_the_gold_words_without_smoothing(build, batch, toy_task):
    model = build()
    samples = [batch([7, 4], [3, 6], seed=1), batch([5], [5], seed=2)]
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    log_p = []
    for sample in samples:
        rows, _ = model(**sample["net_input"])
        gold = sample["target"]
        chosen = rows.double().log_softmax(2).gather(2, gold.unsqueeze(2)).squeeze(2)
        log_p.append(chosen[gold.ne(1)])
    with metrics.aggregate() as logged, torch.no_grad():
        VaswaniCrossEntropy.reduce_metrics([criterion(model, sample)[2] for sample in samples])
    mean = torch.cat(log_p).mean().item()
    values = logged.get_smoothed_values()
    assert values["nll_loss"] == pytest.approx(-mean / math.log(2), abs=1e-3)
    assert values["ppl"] == pytest.approx(math.exp(-mean), rel=1e-3)
    assert values["loss"] != values["nll_loss"]
