"""NVIDIA apex, by stand-ins with its signatures: with it the numbers are the same."""

import importlib.util
import sys
from types import SimpleNamespace

import pytest
import torch

from transformer_plugin.kernels import fused_adam
from transformer_plugin.modules.adam import Adam, adam_update


class AmpC:
    """The module amp_C of NVIDIA apex: its kernel of Adam with the same parameters and equations
    (csrc/multi_tensor_adam.cu), in float64 and one tensor after the other."""

    calls = 0

    @staticmethod
    def multi_tensor_adam(
        chunk_size, noop_flag, tensor_lists, lr, beta1, beta2, epsilon, step, mode,
        bias_correction, weight_decay,
    ):  # fmt: skip
        AmpC.calls += 1
        assert chunk_size == 2048 * 32 and noop_flag.dtype == torch.int32
        correction1, correction2 = 1.0, 1.0
        if bias_correction == 1:
            correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        for g, p, m, v in zip(*tensor_lists, strict=True):
            assert len({t.dtype for t in (g, p, m, v)}) == 1  # the kernel has one type for all
            new_g, old_p = g.double(), p.double()
            if mode == 0:
                new_g = new_g + weight_decay * old_p
            new_m = beta1 * m.double() + (1 - beta1) * new_g
            new_v = beta2 * v.double() + (1 - beta2) * new_g * new_g
            update = (new_m / correction1) / ((new_v / correction2).sqrt() + epsilon)
            if mode == 1:
                update = update + weight_decay * old_p
            for tensor, new in ((p, old_p - lr * update), (m, new_m), (v, new_v)):
                tensor.copy_(new)


class Applier:
    """apex.multi_tensor_apply.multi_tensor_applier."""

    available, chunk_size = True, 2048 * 32

    def __call__(self, op, noop_flag_buffer, tensor_lists, *args):
        return op(self.chunk_size, noop_flag_buffer, tensor_lists, *args)


@pytest.fixture
def apex(monkeypatch):
    """NVIDIA apex is installed, and weights seem to lie on a GPU."""
    applied = SimpleNamespace(multi_tensor_applier=Applier())
    for name, module in {"amp_C": AmpC, "apex": SimpleNamespace(multi_tensor_apply=applied),
                         "apex.multi_tensor_apply": applied}.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(AmpC, "calls", 0)
    monkeypatch.setattr(fused_adam, "_takes_apex", lambda weight: True)
    of_gpus = [i for i in adam_update.implementations if i.run is fused_adam.fused_adam_update]
    monkeypatch.setattr(adam_update, "implementations", of_gpus)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_apex_makes_the_same_updates(apex, monkeypatch, dtype):
    """With epsilons and gradients so small that where epsilon is added matters."""

    def trained(steps_before):
        torch.manual_seed(0)
        weights = [torch.nn.Parameter(torch.randn(n)) for n in (7, 300)]
        copies = {w: torch.nn.Parameter(w.detach().to(dtype)) for w in weights}
        optimizer = Adam(weights, lr=1e-2, eps=1e-3, weight_decay=0.01)
        versions = [w._version for w in weights]
        for step in range(6):
            if step == steps_before:  # the run goes on on a machine without apex
                monkeypatch.setattr(fused_adam, "_takes_apex", lambda weight: False)
            for w in weights:
                half = dtype != torch.float32
                (copies[w] if half else w).grad = torch.randn(w.shape).to(dtype) * 1e-3
            optimizer.step(rounded=copies if dtype != torch.float32 else None, factor=0.5)
        assert all(w._version > v for w, v in zip(weights, versions, strict=True))
        return [*weights, *copies.values()], optimizer.state_dict()["state"]

    with_apex, state = trained(6)
    assert AmpC.calls == 6
    mixed, _ = trained(3)
    assert AmpC.calls == 9
    monkeypatch.setattr(adam_update, "implementations", [])
    plain, plain_state = trained(6)
    assert AmpC.calls == 9
    for found in (with_apex, mixed):
        for mine, theirs in zip(found, plain, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    assert state.keys() == plain_state.keys()
    assert {s["step"] for s in state.values()} == {6}


def test_apex_is_for_gpus_and_not_the_package_of_pypi(monkeypatch):
    assert not fused_adam._takes_apex(torch.ones(1))
    found = {"apex"}  # PyPI's has no amp_C
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name in found or None)
    assert not fused_adam.apex_is_installed.__wrapped__()
    found.add("amp_C")
    assert fused_adam.apex_is_installed.__wrapped__()


class FusedLayerNorm(torch.nn.Module):
    """apex.normalization.FusedLayerNorm, on a CPU."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, memory_efficient=False):
        super().__init__()
        self.normalized_shape, self.eps = (normalized_shape,), eps
        self.weight = torch.nn.Parameter(torch.ones(normalized_shape))
        self.bias = torch.nn.Parameter(torch.zeros(normalized_shape))

    def forward(self, input):
        shape = self.normalized_shape
        return torch.nn.functional.layer_norm(input, shape, self.weight, self.bias, self.eps)


def test_a_model_takes_apexs_norm(build, batch):
    model, sample = build(), batch([5, 7], [4, 6])["net_input"]
    with torch.no_grad():
        expected, _ = model(**sample)
        state = model.state_dict()
        for module in list(model.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, torch.nn.LayerNorm):
                    setattr(module, name, FusedLayerNorm(child.normalized_shape[0], eps=child.eps))
        assert not any(isinstance(module, torch.nn.LayerNorm) for module in model.modules())
        model.load_state_dict(state)
        found, _ = model(**sample)
    torch.testing.assert_close(found, expected)
