"""Updates from half-precision gradients against fairseq's, which copies them to float32."""

import copy
import math

import pytest
import torch
from fairseq import optim
from fairseq.optim.fp16_optimizer import FP16Optimizer as FairseqFP16Optimizer
from omegaconf import OmegaConf
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_plugin.adam import VaswaniAdamConfig
from transformer_plugin.modules.adam import adam_update
from transformer_plugin.refusal import Refusal
from transformer_plugin.training.master_weights import master_weights
from transformer_plugin.training.mixed_precision import (
    FlatFP16Optimizer,
    FP16Optimizer,
    optimizers_for_half_precision,
)

SIZES = [(40, 30), (7,), (300,), (11, 13)]


def configuration(**changes):
    optimizer = {
        **vars(VaswaniAdamConfig()),
        **{"_name": "vaswani_adam", "lr": [0.01], "weight_decay": 0.01},
    }
    cfg = {
        "common": {"bf16": True, "fp16_scale_window": 1, "fp16_no_flatten_grads": False},
        "distributed_training": {"distributed_world_size": 1, "zero_sharding": "none"},
        "optimization": {"update_freq": [1]},
        "optimizer": optimizer,
    }
    return OmegaConf.merge(OmegaConf.create(cfg), changes)


@pytest.fixture(params=[True, False], ids=["kernels", "plain"])
def kernels(request, monkeypatch):
    """Whether kernels may stand for the operations."""
    if not request.param:
        monkeypatch.setattr(adam_update, "implementations", [])
    return request.param


@pytest.fixture
def build_parameters():
    def build():
        torch.manual_seed(0)
        return [torch.nn.Parameter(torch.randn(size).bfloat16()) for size in SIZES]

    return build


def updates(optimizer, params, number, seed=1, clip=0.0):
    """Norms of the gradients of so many updates."""
    generator = torch.Generator().manual_seed(seed)
    norms = []
    for i in range(number):
        if i % 2 == 0:  # fairseq's trainer calls it each time, but other loops may not
            optimizer.zero_grad()
        for p in params[:-1]:  # the last one has no gradient
            p.grad = torch.randn(p.shape, generator=generator).to(p.dtype)
        optimizer._needs_sync = True  # as backward() sets it
        optimizer.multiply_grads(0.25)
        norms.append(float(optimizer.clip_grad_norm(clip)))
        optimizer.step()
    return norms


def assert_equal(ours, stock):
    weights = (master_weights(optimizer).values() for optimizer in (ours, stock))
    for mine, theirs in zip(*weights, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-7, rtol=1e-6)
    for mine, theirs in zip(ours.fp16_params, stock.fp16_params, strict=True):
        torch.testing.assert_close(mine, theirs, atol=0, rtol=0.008)


@pytest.mark.parametrize("clip", [0.0, 0.5, 1000.0])
def test_updates_are_fairseqs(build_parameters, kernels, clip):
    ours, stock = (
        kind.build_optimizer(configuration(), build_parameters())
        for kind in (FP16Optimizer, FairseqFP16Optimizer)
    )
    assert type(ours) is FP16Optimizer
    norms = updates(ours, ours.fp16_params, 8, clip=clip)
    assert norms == pytest.approx(updates(stock, stock.fp16_params, 8, clip=clip), rel=1e-6)
    assert all(p.grad is None for p in ours.fp32_params)
    assert_equal(ours, stock)


def test_an_update_of_many_numbers_is_adams_formula(kernels):
    """Of more numbers than a thread takes at once, and not a multiple of a vector's."""
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(3 * 16_384 + 7).bfloat16())
    optimizer = FP16Optimizer.build_optimizer(configuration(), [parameter])
    w, m, v = parameter.detach().double(), 0, 0
    beta1, beta2 = optimizer.optimizer.param_groups[0]["betas"]
    for step in range(1, 4):
        g = torch.randn(parameter.shape).bfloat16()
        optimizer.zero_grad()
        parameter.grad = g
        optimizer._needs_sync = True
        optimizer.multiply_grads(0.25)
        g = 0.25 * g.double()
        assert float(optimizer.clip_grad_norm(0.0)) == pytest.approx(float(g.norm()), rel=1e-5)
        optimizer.step()
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        rate = 0.01 * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        w = w * (1 - 0.01 * 0.01) - rate * m / (v.sqrt() + 1e-9)
        (exact,) = master_weights(optimizer).values()
        torch.testing.assert_close(exact.double(), w, atol=1e-6, rtol=1e-6)
        assert parameter.equal(exact.bfloat16())


@pytest.mark.parametrize(
    "first, second", [(FP16Optimizer, FairseqFP16Optimizer), (FairseqFP16Optimizer, FP16Optimizer)]
)
def test_the_state_of_one_goes_on_in_the_other(build_parameters, first, second):
    straight = FP16Optimizer.build_optimizer(configuration(), build_parameters())
    updates(straight, straight.fp16_params, 3)
    before = first.build_optimizer(configuration(), build_parameters())
    updates(before, before.fp16_params, 3)
    after = second.build_optimizer(configuration(), build_parameters())
    after.load_state_dict(copy.deepcopy(before.state_dict()))
    torch._foreach_copy_(*(list(master_weights(each).values()) for each in (after, before)))
    for optimizer in (straight, after):
        updates(optimizer, optimizer.fp16_params, 3, seed=2)
    assert_equal(after, straight)
    assert first.__name__ == second.__name__  # which a checkpoint names, and fairseq asks for


@pytest.mark.parametrize("sharding", ["none", "os"])
def test_an_update_left_out_leaves_nothing_behind(build_parameters, sharding):
    cfg = configuration(distributed_training={"zero_sharding": sharding})
    skipping, straight = (FP16Optimizer.build_optimizer(cfg, build_parameters()) for _ in range(2))
    for p in skipping.fp16_params:
        p.grad = torch.full_like(p, torch.nan)
    skipping._needs_sync = True
    skipping.multiply_grads(0.25)
    assert not torch.isfinite(skipping.clip_grad_norm(0.0))
    for optimizer in (skipping, straight):
        updates(optimizer, optimizer.fp16_params, 2)
    assert_equal(skipping, straight)


@pytest.mark.parametrize(
    "changes",
    [
        {"distributed_training": {"zero_sharding": "os"}},
        {"optimizer": {"_name": "adam"}},
    ],
    ids=["sharded", "another optimizer"],
)
def test_what_it_is_not_for_is_fairseqs(build_parameters, monkeypatch, changes):
    built = []
    monkeypatch.setattr(
        FairseqFP16Optimizer,
        "build_optimizer",
        classmethod(lambda cls, *_: built.append(cls) or "built"),
    )
    assert FP16Optimizer.build_optimizer(configuration(**changes), build_parameters()) == "built"
    assert built == [FlatFP16Optimizer]


class Copies(TorchDispatchMode):
    """Counts the copies."""

    number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += "copy_" in func.overloadpacket.__name__
        return func(*args, **(kwargs or {}))


@pytest.fixture
def in_fp16(build_parameters, monkeypatch):
    """in_fp16(class, **options) builds an optimizer as on a GPU, in fp16 with a loss scale."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    precision = {"bf16": False, "fp16": True, "on_cpu_convert_precision": False}
    scale = {"fp16_init_scale": 4, "fp16_scale_tolerance": 0.0, "threshold_loss_scale": None}

    def build(kind, **options):
        cfg = configuration(common={"min_loss_scale": 1e-4} | precision | scale | options)
        weights = [torch.nn.Parameter(p.half()) for p in build_parameters()]
        return kind.build_optimizer(cfg, weights)

    return build


def test_a_continued_run_scales_as_a_whole_one(in_fp16):
    """The scale doubles after three updates without an overflow, of which two were made before."""
    whole, again, stock = (in_fp16(FP16Optimizer, fp16_scale_window=3) for _ in range(3))
    updates(whole, whole.fp16_params, 2)
    whole.zero_grad()
    with pytest.raises(OverflowError):
        whole.scaler.check_overflow(float("inf"))
    updates(whole, whole.fp16_params, 1)
    state = copy.deepcopy(whole.state_dict())
    again.load_state_dict(state)
    stock.load_state_dict({name: state[name] for name in state if name != "loss_scale_window"})
    scales = []
    for optimizer in (whole, again, stock):
        for _ in range(4):
            updates(optimizer, optimizer.fp16_params, 1)
            scales.append(optimizer.scaler.loss_scale)
    assert scales[:4] == scales[4:8] != scales[8:]


def test_all_weights_in_one_vector_are_copied_at_once(in_fp16):
    ours, stock = (in_fp16(kind) for kind in (FP16Optimizer, FairseqFP16Optimizer))
    assert type(ours) is FlatFP16Optimizer
    assert updates(ours, ours.fp16_params, 5) == updates(stock, stock.fp16_params, 5)
    for mine, theirs in zip(ours.fp16_params, stock.fp16_params, strict=True):
        assert mine.equal(theirs)
    assert type(ours).__name__ == FairseqFP16Optimizer.__name__  # which checkpoints store
    ours._needs_sync = True
    with Copies() as copies:
        ours._sync_fp16_grads_to_fp32()
        ours._sync_fp32_params_to_fp16()
    assert copies.number == 2


def test_an_option_that_fairseq_misses_is_named_in_a_line():
    cfg = configuration(common={"fp16_scale_window": None}, optimization={"update_freq": [2, 1]})
    weights = [torch.nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))]
    with (
        pytest.raises(Refusal, match="--fp16-scale-window must be given"),
        optimizers_for_half_precision(),
    ):
        assert optim.FP16Optimizer is FP16Optimizer
        optim.FP16Optimizer.build_optimizer(cfg, weights)
    assert optim.FP16Optimizer is FairseqFP16Optimizer


def test_the_norm_of_all_parts_of_a_model_is_computed_by_fairseqs_function(build_parameters):
    optimizer = FP16Optimizer.build_optimizer(configuration(), build_parameters())
    optimizer.zero_grad()
    for parameter in optimizer.fp16_params:
        parameter.grad = torch.ones_like(parameter)
    alone = optimizer.clip_grad_norm(0.0)
    assert optimizer.clip_grad_norm(0.0, lambda norm: 3 * norm) == 3 * alone
