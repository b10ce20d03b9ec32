"""Adam against fairseq's own, and the exchange of their states."""

import copy
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from fairseq.optim.adam import Adam as StockAdam
from omegaconf import OmegaConf

from transformer_plugin.adam import VaswaniAdam, VaswaniAdamConfig
from transformer_plugin.modules.adam import Adam, adam_update

F64 = torch.float64
NUMBERS = {"lr": 1e-3, "betas": (0.9, 0.98), "eps": 1e-3, "weight_decay": 0.01}


def parameters():
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.randn(size, dtype=F64)) for size in ((5, 3), (7,))]


def update(optimizer, params, steps, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        for p in params:
            p.grad = (torch.randn(p.shape, generator=generator, dtype=F64) * 1e-2).to(p.dtype)
        optimizer.step()


def test_updates_equal_fairseqs():
    ours, stock = parameters(), parameters()
    update(Adam(ours, **NUMBERS), ours, 20)
    update(StockAdam(stock, **NUMBERS), stock, 20)
    for a, b in zip(ours, stock, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-6)


def test_epsilon_is_epsilon_hat():
    """One update by hand: m = (1 - b1) g, v = (1 - b2) g^2."""
    p = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    p.grad = torch.tensor([0.5], dtype=torch.float64)
    Adam([p], lr=0.1, betas=(0.9, 0.98), eps=0.01, weight_decay=0.0).step()
    m, v = 0.1 * 0.5, 0.02 * 0.25
    expected = 1 - 0.1 * (0.02**0.5 / 0.1) * m / (v**0.5 + 0.01)
    assert p.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("cut", [lambda w: w[:, :3], lambda w: w.t()], ids=["part", "transposed"])
def test_weights_with_gaps_are_updated_as_others(cut):
    """Gradients may be laid out differently."""
    whole = torch.randn(5, 8)
    with_gaps, plain = torch.nn.Parameter(cut(whole)), torch.nn.Parameter(cut(whole).contiguous())
    with_gaps.data = cut(whole)
    assert not with_gaps.is_contiguous()
    optimizers = [Adam([w], **NUMBERS) for w in (with_gaps, plain)]
    for _ in range(3):
        gradient = torch.randn(plain.shape)
        for w, optimizer in zip((with_gaps, plain), optimizers, strict=True):
            w.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(with_gaps, plain)


@pytest.mark.parametrize("first, second", [(StockAdam, Adam), (Adam, StockAdam)])
def test_state_of_one_goes_on_in_the_other(first, second):
    straight, handed = parameters(), parameters()
    reference = StockAdam(straight, **NUMBERS)
    update(reference, straight, 6)
    update(reference, straight, 6, seed=2)
    optimizer = first(handed, **NUMBERS)
    update(optimizer, handed, 6)
    state = copy.deepcopy(optimizer.state_dict())
    optimizer = second(handed, **NUMBERS)
    optimizer.load_state_dict(state)
    update(optimizer, handed, 6, seed=2)
    for a, b in zip(straight, handed, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-6)


def config(**fields):
    return OmegaConf.create(vars(VaswaniAdamConfig()) | {"lr": [1e-3]} | fields)


def test_defaults_are_the_papers():
    group = VaswaniAdam(config(), parameters()).optimizer.param_groups[0]
    assert (tuple(group["betas"]), group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


@pytest.mark.parametrize("betas", ["(0.8, 0.9)", "[0.8, 0.9]", "0.8,0.9"])
def test_the_options_are_those_of_the_updates(betas):
    """Also in the form of a list, as in fairseq's YAML files."""
    numbers = {"adam_betas": betas, "adam_eps": 1e-4, "weight_decay": 0.1, "lr": [0.2]}
    ours, plain = parameters(), parameters()
    update(VaswaniAdam(config(**numbers), ours).optimizer, ours, 3)
    expected = StockAdam(plain, lr=0.2, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.1)
    update(expected, plain, 3)
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_weights_are_updated_as_by_fairseq(dtype):
    """In float32, with state in float32; then rounded."""
    ours, stock = ([torch.nn.Parameter(p.to(dtype)) for p in parameters()] for _ in range(2))
    mine, theirs = Adam(ours, **NUMBERS), StockAdam(stock, **NUMBERS)
    for optimizer, params in ((mine, ours), (theirs, stock)):
        update(optimizer, params, 20)
    for a, b in zip(ours, stock, strict=True):
        torch.testing.assert_close(a, b, atol=0, rtol=torch.finfo(dtype).eps)
        for moment in ("exp_avg", "exp_avg_sq"):
            found, expected = mine.state[a][moment], theirs.state[b][moment]
            assert found.dtype == expected.dtype == torch.float32
            torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("with_kernels", [True, False])
def test_a_state_is_restored_exactly(dtype, with_kernels, monkeypatch):
    if not with_kernels:
        monkeypatch.setattr(adam_update, "implementations", [])
    straight, restored = ([torch.nn.Parameter(p.to(dtype)) for p in parameters()] for _ in range(2))
    optimizers = [Adam(params, **NUMBERS) for params in (straight, restored)]
    for seed in (1, 2):
        for optimizer, params in zip(optimizers, (straight, restored), strict=True):
            update(optimizer, params, 10, seed)
        state = copy.deepcopy(optimizers[1].state_dict())
        optimizers[1] = Adam(restored, **NUMBERS)
        optimizers[1].load_state_dict(state)
    for a, b in zip(straight, restored, strict=True):
        assert a.equal(b)
        for name, expected in optimizers[0].state[a].items():
            torch.testing.assert_close(optimizers[1].state[b][name], expected, rtol=0, atol=0)


def test_a_weight_without_a_gradient_stays_and_counts_its_own_updates():
    first, second = parameters()
    optimizer = Adam([first, second], **NUMBERS)
    before = second.detach().clone()
    update(optimizer, [first], 2)
    assert second.equal(before)
    first.grad = None
    second.grad = torch.full_like(second, 0.5)
    optimizer.step()
    assert [optimizer.state[p]["step"] for p in (first, second)] == [2, 1]
    alone = torch.nn.Parameter(before.clone())
    alone.grad = torch.full_like(alone, 0.5)
    Adam([alone], **NUMBERS).step()
    torch.testing.assert_close(second, alone)


def test_weights_that_join_later_are_updated_as_by_fairseq():
    """As layers that are unfrozen: each weight's bias correction is of its own updates."""
    ours, stock = parameters(), parameters()
    for params, kind in ((ours, Adam), (stock, StockAdam)):
        optimizer = kind(params, **NUMBERS)
        update(optimizer, params[:1], 5)
        update(optimizer, params, 5)
    for a, b in zip(ours, stock, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-6)


def test_each_group_has_its_own_numbers():
    together, apart = parameters(), parameters()
    numbers = [NUMBERS, {**NUMBERS, "lr": 1e-2, "betas": (0.8, 0.9), "weight_decay": 0.0}]
    groups = [{"params": [p], **of} for p, of in zip(together, numbers, strict=True)]
    update(Adam(groups), together, 3)
    optimizers = [Adam([p], **of) for p, of in zip(apart, numbers, strict=True)]
    both = SimpleNamespace(step=lambda: [optimizer.step() for optimizer in optimizers])
    update(both, apart, 3)
    assert all(map(torch.equal, together, apart))


def test_a_closure_gives_the_loss():
    (p, _other) = parameters()
    optimizer = Adam([p], **NUMBERS)

    def closure():
        optimizer.zero_grad()
        loss = p.square().sum()
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(20)]
    assert losses == sorted(losses, reverse=True)


def test_betas_that_are_no_pair_are_refused():
    with pytest.raises(ValueError, match="two numbers"):
        VaswaniAdam(config(adam_betas="0.9"), parameters())


def test_nothing_imports_torchs_compiler():
    """Which takes longer than the rest of torch.optim, and 80 MiB."""
    code = """
import sys, torch
from transformer_plugin.adam import Adam
p = torch.nn.Parameter(torch.ones(3))
p.grad = torch.ones(3)
optimizer = Adam([p], lr=0.1)
optimizer.step()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_hook_may_change_the_state_that_is_loaded():
    (p, _other) = parameters()
    optimizer = Adam([p], **NUMBERS)
    update(optimizer, [p], 1)
    double = copy.deepcopy(optimizer.state_dict())
    double["state"][0]["exp_avg"] *= 2
    other = Adam([p], **NUMBERS)
    other.register_load_state_dict_pre_hook(lambda _optimizer, _state: double)
    other.load_state_dict(optimizer.state_dict())
    assert other.state[p]["exp_avg"].equal(double["state"][0]["exp_avg"])
