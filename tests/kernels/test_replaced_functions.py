"""Whoever replaces an equation in a running program gets it in training and in search, too."""

import functools
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from transformer_plugin.criterion import VaswaniCrossEntropy
from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.kernels.replaced import Names
from transformer_plugin.modules import attention, label_smoothing, multi_head_attention
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.modules.linear import linear
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.search.kv_cache import LayerCache
from transformer_plugin.search.next_tokens import Rules


def halved(function):
    """Its first result, halved."""

    def half(*args, **kwargs):
        found = function(*args, **kwargs)
        return (found[0] / 2, *found[1:]) if isinstance(found, tuple) else found / 2

    return half


# Where the name is, the name, and what changes with it.
REPLACED = {
    "a method": (MultiHeadAttention, "attend", "loss scores"),
    "a function": (attention, "attention_weights", "loss scores"),
    "an imported operation": (multi_head_attention, "attention", "loss scores"),
    "the equation of an operation": (attention.attention, "plain", "loss scores"),
    "the loss": (label_smoothing, "smoothed_cross_entropy", "loss"),
    "a method of the cache": (LayerCache, "self_attention", "scores"),
    "a layer of torch": (nn.Linear, "forward", "loss scores"),
}


@pytest.fixture
def numbers(build, batch):
    """numbers() are the loss and its gradient, and the scores of a search."""
    torch.manual_seed(3)
    model, sample = build(d_model=64, d_ff=96), batch([7, 4, 9], [3, 6, 5])
    with torch.no_grad():  # random models are nearly uniform
        for weight in model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    rules = Rules(2, functools.partial(gnmt_length_penalty, alpha=0.6), "bound", 2, 1, 3)
    task = SimpleNamespace(target_dictionary=model.decoder.dictionary)

    def found():
        loss, _size, _log = VaswaniCrossEntropy(task, 0.1, False)(model.train(), sample)
        gradient = torch.autograd.grad(loss, model.decoder.output_projection.weight)[0]
        model.eval().requires_grad_(False)
        beams = VaswaniGenerator([model], rules, 0, 9).generate([model], sample)
        model.requires_grad_(True)
        scores = torch.stack([h["score"] for beam in beams for h in beam])
        return {"loss": torch.stack([loss.detach(), gradient.norm()]), "scores": scores}

    return found


def differing(one, other):
    return {key for key in one if not torch.allclose(one[key], other[key], rtol=1e-4, atol=1e-5)}


@pytest.mark.parametrize("name", REPLACED)
def test_what_a_program_replaces_is_what_runs(name, numbers, plain_functions, monkeypatch, caplog):
    owner, attribute, changes = REPLACED[name]
    before = numbers()
    assert not caplog.messages
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, halved(getattr(owner, attribute)))
        after = numbers()
        with plain_functions():
            expected = numbers()
    assert differing(after, expected) == set()
    assert differing(before, after) == set(changes.split())
    assert all(f".{attribute}; the kernel in kernels/" in line for line in caplog.messages)
    assert len(caplog.messages) == len(set(caplog.messages)) > 0
    caplog.clear()
    assert differing(numbers(), before) == set() and not caplog.messages


@pytest.mark.parametrize("kind", [nn.Linear, attention.AttentionScore, nn.Module])
def test_another_call_of_modules_is_what_runs(kind, numbers, plain_functions, monkeypatch):
    before = numbers()
    monkeypatch.setattr(kind, "__call__", halved(kind.__call__))
    after = numbers()
    with plain_functions():
        assert differing(after, numbers()) == set()
    assert differing(before, after) == {"loss", "scores"}


def test_a_hook_of_all_modules_is_called(numbers, plain_functions):
    """As profilers and quantisation tools install it."""
    before = numbers()
    hook = register_module_forward_hook(
        lambda module, _inputs, output: output / 2 if type(module) is nn.Linear else None
    )
    try:
        after = numbers()
        with plain_functions():
            assert differing(after, numbers()) == set()
    finally:
        hook.remove()
    assert differing(before, after) == {"loss", "scores"}


def test_what_was_replaced_before_is_seen(monkeypatch):
    """Also where it looks like the original, or is a function of the plugin."""
    attend, forward = MultiHeadAttention.attend, attention.AttentionScore.forward
    monkeypatch.setattr(MultiHeadAttention, "attend", functools.wraps(attend)(halved(attend)))
    monkeypatch.setattr(attention.AttentionScore, "forward", attention.attention_weights)
    assert forward is not attention.AttentionScore.forward
    expected = ["AttentionScore.forward", "MultiHeadAttention.attend"]
    assert Names([MultiHeadAttention]).replaced() == expected


def test_a_deleted_name_counts_as_replaced(monkeypatch):
    names = Names([linear])
    assert names.are_kept()
    monkeypatch.delattr(linear, "plain")
    assert not names.are_kept() and names.replaced() == ["linear.plain"]
