"""Training as stock fairseq does it: the same parameters after the same updates."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import (
    InverseSquareRootLRScheduleConfig,
    InverseSquareRootSchedule,
)
from omegaconf import OmegaConf

from transformer_plugin.adam import VaswaniAdam, VaswaniAdamConfig
from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.fidelity import FIDELITIES

UPDATES = 20
KEY_BIAS = "k_proj.bias"
FIXED = {
    "lr": [2e-3],
    "adam_betas": "(0.9, 0.98)",
    "tpu": False,
    "memory_efficient_fp16": False,
    "memory_efficient_bf16": False,
    "fp16_adam_stats": False,
}


def settings(dataclass, **numbers):
    return OmegaConf.create({**vars(dataclass()), **FIXED, **numbers})


def train(model, criterion, optimizer, batches):
    """What fairseq's Trainer does with one worker: the gradient of the mean over the tokens,
    Adam, and inverse_sqrt with its warm-up."""
    schedule = InverseSquareRootSchedule(
        settings(InverseSquareRootLRScheduleConfig, warmup_updates=8, warmup_init_lr=1e-4),
        optimizer,
    )
    losses = []
    for update, sample in enumerate(batches, start=1):
        optimizer.zero_grad()
        loss, sample_size, _ = criterion(model, sample)
        optimizer.backward(loss)
        optimizer.multiply_grads(1 / sample_size)
        optimizer.step()
        schedule.step_update(update)
        losses.append(loss.item() / sample_size)
    return losses


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def trained(request, build, build_stock, batch, toy_task):
    """The two models after the same updates from the same start, that start, and the losses."""
    epsilon = FIDELITIES["fairseq"]["adam_eps"]
    batches = [batch([7, 4, 6, 9], [3, 6, 5, 8], seed=seed % 5) for seed in range(UPDATES)]

    norm = {f"{side}_normalize_before": request.param for side in ("encoder", "decoder")}
    stock = build_stock(**norm)
    start = {name: value.clone() for name, value in stock.state_dict().items()}
    ours = build(fidelity="fairseq", pre_norm=request.param)
    ours.load_state_dict(start)

    losses = (
        train(
            stock,
            LabelSmoothedCrossEntropyCriterion(toy_task, False, 0.1),
            FairseqAdam(settings(FairseqAdamConfig, use_old_adam=True), stock.parameters()),
            batches,
        ),
        train(
            ours,
            VaswaniCrossEntropy(toy_task, 0.1, False),
            VaswaniAdam(settings(VaswaniAdamConfig, adam_eps=epsilon), ours.parameters()),
            batches,
        ),
    )
    return stock, ours, start, losses


def test_twenty_updates_end_in_stock_fairseqs_parameters(trained):
    stock, ours, start, (stock_losses, our_losses) = trained
    assert our_losses == pytest.approx(stock_losses, rel=1e-5)
    assert our_losses[-1] < 0.9 * our_losses[0]
    expected = stock.state_dict()
    for name, value in ours.state_dict().items():
        if not name.endswith(KEY_BIAS):
            assert (value - start[name]).abs().max() > 5e-3, name
            torch.testing.assert_close(value, expected[name], atol=1e-5, rtol=0, msg=name)


def test_biases_of_keys_are_noise_without_effect(trained, batch):
    """Their gradient is 0 but for rounding, which Adam scales up to whole steps in either system:
    they add the same to all scores of a query, and the softmax takes it away."""
    _, ours, _, _ = trained
    inputs = batch([7, 4], [3, 6])["net_input"]
    before, _ = ours(**inputs)
    state = ours.state_dict()
    noise = {n: torch.randn_like(v) for n, v in state.items() if n.endswith(KEY_BIAS)}
    assert len(noise) == 6
    ours.load_state_dict(state | noise)
    torch.testing.assert_close(ours(**inputs)[0], before, atol=1e-5, rtol=1e-5)


def test_fidelity_fairseq_is_what_stock_fairseq_does_by_default():
    assert FIDELITIES["fairseq"]["adam_eps"] == FairseqAdamConfig().adam_eps
