"""What the loss logs: bits a token, and the perplexity of Table 3."""

import math
import time

import pytest
import torch
from fairseq.logging import metrics

from transformer_plugin.criterion import VaswaniCrossEntropy

LAYERS, D_MODEL, D_FF = 2, 32, 64  # of the model that the fixture builds


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


def test_training_logs_operations_and_the_share_of_the_peak(build, batch, toy_task, monkeypatch):
    model = build()
    source, target = [7, 4, 9], [3, 6, 5]
    peak = 40.0  # TFLOP/s
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False, peak)
    clock = {"now": 0.0}
    monkeypatch.setattr(time, "perf_counter", lambda: clock["now"])
    with metrics.aggregate() as logged:
        for seconds in (0.0, 25e-8, 25e-8):  # the first only starts the clock
            clock["now"] += seconds
            log = criterion(model, batch(source, target))[2]
            VaswaniCrossEntropy.reduce_metrics([log])
        values = logged.get_smoothed_values()
    n, d, ff, vocabulary = LAYERS, D_MODEL, D_FF, len(toy_task.target_dictionary)
    forward = sum(  # facts of the paper: products and sums of one pair of sentences
        n * (s * (8 * d * d + 4 * d * ff) + 4 * s * s * d)
        + n * (t * (12 * d * d + 4 * d * ff) + 4 * d * d * s + 4 * t * t * d + 4 * t * s * d)
        + 2 * t * d * vocabulary
        for s, t in zip(source, target, strict=True)
    )
    rate = 2 * 3 * forward / 50e-8
    assert rate > 1e12  # so that rounding leaves digits to compare
    assert values["tflops"] == pytest.approx(rate / 1e12, abs=1e-3)
    assert values["mfu"] == pytest.approx(100 * rate / (peak * 1e12), abs=1e-2)


@pytest.mark.parametrize("gold", [4, 9])
def test_of_equally_likely_words_each_is_correct(build, batch, toy_task, gold):
    """With or without the sum over the batch."""
    model = build().eval()
    torch.nn.init.zeros_(model.decoder.output_projection.weight)
    sample = batch([3, 5], [4, 4])
    sample["target"].fill_(gold)
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    for reduce in (True, False):
        assert criterion(model, sample, reduce)[2]["correct"].item() == 8


def test_validation_is_not_counted_as_training(build, batch, toy_task):
    log = VaswaniCrossEntropy(toy_task, 0.1, False, 1.0)(build().eval(), batch([3], [3]))[2]
    assert not {"flops", "peak_seconds"} & log.keys()
