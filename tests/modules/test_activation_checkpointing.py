"""Activations computed twice: the same gradients from less memory."""

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from transformer_plugin.modules.key_values import WholeSentences
from transformer_plugin.modules.layers import DecoderLayer, EncoderLayer, LayerShape
from transformer_plugin.modules.packing import Packing
from transformer_plugin.modules.stack import Stack

LENGTHS = torch.tensor([5, 9, 2])


class ParallelLayer(EncoderLayer):
    """Both sub-layers on one input (Chowdhery et al. 2022)."""

    def forward(self, x, key_values, need_weights):
        y = self.self_attention_residual.norm(x)
        y, weights = self.self_attention(y, key_values, need_weights)
        return x + y + self.feed_forward(self.feed_forward_residual.norm(x)), weights


def stack_of(layer, shape):
    stack = Stack(nn.Embedding(3, 32, padding_idx=0), nn.Identity(), shape)
    stack.add_layers([layer], shape)
    return stack


def trained(build, checkpointed):
    """Gradients of an update with dropout, and the bytes kept from forward to backward."""
    torch.manual_seed(0)
    shape = LayerShape(32, 64, 2, 16, 16, dropout=0.3, checkpoint_activations=checkpointed)
    layer = build(shape)
    stack = stack_of(layer, shape)
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    x = torch.randn(int(LENGTHS.sum()), 32, requires_grad=True)
    memory = None if issubclass(build, EncoderLayer) else torch.randn_like(x, requires_grad=True)
    whole = WholeSentences(packing, build is DecoderLayer, memory, packing)
    kept = []
    with saved_tensors_hooks(lambda t: kept.append(t.nbytes) or t, lambda t: t):
        y, _weights = stack.through_layers(x, [whole])
    after_forward = sum(kept)
    loss = y.square().sum()
    inputs = [x] if memory is None else [x, memory]
    return [y, *torch.autograd.grad(loss, [*inputs, *layer.parameters()])], after_forward


@pytest.mark.parametrize("build", [EncoderLayer, DecoderLayer, ParallelLayer])
def test_the_same_gradients_from_less_memory(build):
    plain, of_plain = trained(build, False)
    twice, of_twice = trained(build, True)
    for mine, theirs in zip(twice, plain, strict=True):
        assert mine.equal(theirs)
    assert of_twice < of_plain / 5


def test_nothing_is_computed_twice_without_gradients():
    shape = LayerShape(32, 64, 2, 16, 16, checkpoint_activations=True)
    layer = EncoderLayer(shape).eval()
    calls = []
    layer.feed_forward.register_forward_hook(lambda *_: calls.append(1))
    packing = Packing.of_lengths(LENGTHS, int(LENGTHS.max()))
    with torch.no_grad():
        x = torch.randn(int(LENGTHS.sum()), 32)
        stack_of(layer, shape).through_layers(x, [WholeSentences(packing)])
    assert calls == [1]
