"""What the loss logs: bits a token, and the perplexity of Table 3."""

import math
import time

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.distributed import ModuleProxyWrapper
from fairseq.logging import metrics
from torch.nn.parallel import DistributedDataParallel

from transformer_plugin import criterion as module
from transformer_plugin.criterion import VaswaniCrossEntropy

LAYERS, D_MODEL, D_FF = 2, 32, 64  # shape of the model that the fixture builds


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


@pytest.mark.parametrize("sentence_avg", [False, True])
def test_batches_count_by_their_tokens_or_sentences(build, batch, toy_task, sentence_avg):
    """In validation, where fairseq logs one batch after the other."""
    model = build()
    samples = [batch([7, 4], [3, 6], seed=1), batch([5], [5], seed=2)]
    criterion = VaswaniCrossEntropy(toy_task, 0.1, sentence_avg)
    with metrics.aggregate() as logged, torch.no_grad():
        found = [criterion(model, sample) for sample in samples]
        for _, _, log in found:
            VaswaniCrossEntropy.reduce_metrics([log])
    tokens = [int(sample["target"].ne(1).sum()) for sample in samples]
    sizes = [size for _, size, _ in found]
    assert sizes == ([2, 1] if sentence_avg else tokens)
    loss = sum(loss.item() for loss, _, _ in found) / sum(sizes)
    nll, correct = (
        sum(log[name].item() for _, _, log in found) / sum(tokens)
        for name in ("nll_loss", "correct")
    )
    values = logged.get_smoothed_values()
    assert values["loss"] == pytest.approx(loss / math.log(2), abs=1e-3)
    assert values["nll_loss"] == pytest.approx(nll / math.log(2), abs=1e-3)
    assert values["accuracy"] == pytest.approx(100 * correct, abs=1e-2)


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


def test_a_batch_is_logged_with_its_tokens_and_sentences(build, batch, toy_task):
    log = VaswaniCrossEntropy(toy_task, 0.1, False)(build(), batch([7, 4, 5], [3, 6, 2]))[2]
    assert (log["nsentences"], log["ntokens"]) == (3, 11)


def test_work_is_counted_inside_of_wrappers(build, batch, toy_task):
    """DDP has the model, and fairseq's wrapper has DDP."""
    model, sample = build(), batch([7, 4], [3, 6])
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    parallel = ModuleProxyWrapper(torch.nn.DataParallel(model))  # which needs no processes
    assert criterion(parallel, sample)[2]["flops"] == criterion(model, sample)[2]["flops"] > 0


def test_weights_in_half_precision_have_its_peak(build, batch, toy_task, monkeypatch):
    monkeypatch.setattr(module, "peak_flops", lambda device, half: 4e12 if half else 1e12)
    log = VaswaniCrossEntropy(toy_task, 0.1, False)(build().bfloat16(), batch([3], [3]))[2]
    assert log["peak_seconds"].item() == pytest.approx(log["flops"].item() / 4e12)


def test_validation_is_not_counted_as_training(build, batch, toy_task):
    log = VaswaniCrossEntropy(toy_task, 0.1, False, 1.0)(build().eval(), batch([3], [3]))[2]
    assert not {"flops", "peak_seconds"} & log.keys()


def test_a_batch_may_have_lengths_that_a_task_has_added(build, batch, toy_task):
    model, sample = build(), batch([7, 4], [3, 6])
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    own = sample | {"lengths": torch.tensor([7, 4])}
    assert criterion(model, own)[2]["flops"] == criterion(model, sample)[2]["flops"]


@pytest.mark.parametrize("untied", [False, True])
def test_ddp_that_finds_unused_parameters_sees_the_output_layer(
    build, batch, toy_task, tmp_path, untied
):
    """With --find-unused-parameters; an untied output layer has a weight of its own."""
    model = build(untie_embeddings=untied)
    sample = batch([7, 4], [3, 6], seed=1)
    criterion = VaswaniCrossEntropy(toy_task, 0.1, False)
    criterion(model, sample)[0].backward()
    expected = [p.grad.clone() for p in model.parameters()]
    store = f"file://{tmp_path}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        parallel = DistributedDataParallel(model, find_unused_parameters=True)
        for _ in range(2):
            model.zero_grad()
            criterion(ModuleProxyWrapper(parallel), sample)[0].backward()
    finally:
        torch.distributed.destroy_process_group()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_the_peak_is_that_of_all_devices_in_the_type_of_their_products(
    build, batch, toy_task, monkeypatch
):
    peaks = {True: 4e12, False: 1e12}  # in half precision or not
    monkeypatch.setattr(module, "peak_flops", lambda device, half: peaks[half])
    monkeypatch.setattr(module, "get_data_parallel_world_size", lambda: 2)
    criterion, model, sample = VaswaniCrossEntropy(toy_task, 0.1, False), build(), batch([3], [3])
    for half in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            log = criterion(model, sample)[2]
        assert log["peak_seconds"].item() == pytest.approx(log["flops"].item() / peaks[half] / 2)


@pytest.mark.parametrize("epsilon, peak, option", [
    (-0.1, None, "--label-smoothing"), (1.0, None, "--label-smoothing"), (0.1, 0.0, "--peak-tflops")
])  # fmt: skip
def test_wrong_numbers_are_refused(toy_task, epsilon, peak, option):
    with pytest.raises(ValueError, match=f"{option} must be"):
        VaswaniCrossEntropy(toy_task, epsilon, False, peak)


@pytest.mark.parametrize("reduce", [True, False])
def test_targets_that_are_padding_do_not_count(build, batch, toy_task, reduce):
    """fairseq's criteria skip them as well: some tasks mask the loss in this way."""
    model, sample = build(), batch([7, 4, 9], [3, 6, 5])
    sample["target"][0, 1] = sample["target"][1, 0] = sample["target"][1, 4] = 1
    stock = LabelSmoothedCrossEntropyCriterion(toy_task, False, 0.1)
    model.train()
    grads = {}
    for criterion in (VaswaniCrossEntropy(toy_task, 0.1, False), stock):
        loss, _, log = criterion(model, sample, reduce)
        model.zero_grad()
        loss.sum().backward()
        grads[criterion] = [p.grad.clone() for p in model.parameters()], log["nll_loss"].sum()
    torch.testing.assert_close(*grads.values(), atol=2e-5, rtol=1e-4)


def test_a_target_whose_input_is_padding_is_refused(build, batch, toy_task):
    sample = batch([7, 4], [3, 6])
    sample["net_input"]["prev_output_tokens"][1, 2] = 1
    with pytest.raises(ValueError, match="has padding where the target has a token"):
        VaswaniCrossEntropy(toy_task, 0.1, False)(build(), sample)
